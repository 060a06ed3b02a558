// Tokens and words with their times, and phrases as labels.
#include "models/transducer/words.h"

#include <gtest/gtest.h>

#include "models/transducer/phrase_labels.h"

namespace syrinx::transducer {
namespace {

const std::vector<std::string> kPieces = {"\u2581he", "llo", ",", "\u2581", "\u2581world",
                                          ".",        "'",   "s", "<EOU>",  "\u2581."};
enum : int32_t { kHe, kLlo, kComma, kBlank, kWorld, kPoint, kQuote, kS, kEou, kBlankPoint };

std::vector<Emission> emissions(const std::vector<int32_t>& labels, uint32_t duration) {
  std::vector<Emission> out;
  for (size_t i = 0; i < labels.size(); ++i)
    out.push_back({.frame = static_cast<int64_t>(10 * i),
                   .label = labels[i],
                   .duration = duration,
                   .confidence = 1.0f - 0.1f * static_cast<float>(i)});
  return out;
}

TEST(Words, BeginAtBlanksAndCarryTheirPunctuation) {
  const Vocabulary vocabulary = Vocabulary::from_labels(kPieces, false);
  const auto found = emissions({kHe, kLlo, kComma, kBlank, kWorld, kQuote, kS, kPoint, kEou}, 4);
  const auto words = word_times(vocabulary, token_times(vocabulary, HeadKind::kRnnt, found));
  ASSERT_EQ(words.size(), 2u);
  EXPECT_EQ(words[0].text, "hello,");
  EXPECT_EQ(words[0].begin, 0);
  EXPECT_EQ(words[0].end, 24);
  EXPECT_FLOAT_EQ(words[0].confidence, 0.8f);
  EXPECT_EQ(words[1].text, "world's.");
  EXPECT_EQ(words[1].begin, 40);
  EXPECT_EQ(words[1].end, 74);
  EXPECT_EQ(join_words(words), "hello, world's.");
}

// Such models say a mark when the pause is over; it belongs to where the word before it ended.
TEST(Words, PunctuationUnderTdtStandsWhereTheLastLabelEnded) {
  const Vocabulary vocabulary = Vocabulary::from_labels(kPieces, false);
  const auto tokens = token_times(vocabulary, HeadKind::kTdt, emissions({kComma, kHe, kPoint, kBlankPoint, kWorld}, 3));
  ASSERT_EQ(tokens.size(), 5u);
  EXPECT_EQ(tokens[0].begin, 0);  // nothing before it
  EXPECT_EQ(tokens[2].begin, 13);
  EXPECT_EQ(tokens[2].end, 13);
  EXPECT_EQ(tokens[3].end, 13);
  const auto words = word_times(vocabulary, tokens);
  ASSERT_EQ(words.size(), 3u);
  EXPECT_EQ(words[1].text, "he. .");  // as the pieces say it
  EXPECT_EQ(words[1].end, 13);
  EXPECT_EQ(words[2].begin, 40);
}

TEST(Words, ABlankBeforeAMarkBelongsToNoWord) {
  const Vocabulary vocabulary = Vocabulary::from_labels(kPieces, false);
  const auto words = word_times(
      vocabulary, token_times(vocabulary, HeadKind::kRnnt, emissions({kHe, kBlank, kPoint, kBlank, kBlank}, 1)));
  ASSERT_EQ(words.size(), 1u);
  EXPECT_EQ(words[0].text, "he.");
  EXPECT_EQ(words[0].end, 21);
}

TEST(Words, OfCharactersAreSeparatedByBlanks) {
  const Vocabulary vocabulary = Vocabulary::from_labels({" ", "a", "b", "'"}, true);
  const auto words =
      word_times(vocabulary, token_times(vocabulary, HeadKind::kCtc, emissions({1, 2, 0, 0, 2, 3, 1, 0}, 1)));
  ASSERT_EQ(words.size(), 2u);
  EXPECT_EQ(words[0].text, "ab");
  EXPECT_EQ(words[1].text, "b'a");
  EXPECT_EQ(words[1].begin, 40);
  EXPECT_TRUE(word_times(vocabulary, {}).empty());
}

// A mark that opens something, or may, begins a word where a blank stands before it.
TEST(Words, OpeningMarksBeginWords) {
  const auto spoken = [](const std::vector<std::string>& labels, bool characters) {
    const Vocabulary vocabulary = Vocabulary::from_labels(labels, characters);
    std::vector<int32_t> ids;
    for (const std::string& label : labels) ids.push_back(vocabulary.find(label));
    const auto words = word_times(vocabulary, token_times(vocabulary, HeadKind::kTdt, emissions(ids, 2)));
    for (const WordTime& word : words) EXPECT_EQ(word.begin % 10, 0) << word.text;  // where its own label was found
    return join_words(words);
  };
  EXPECT_EQ(spoken({"h", "i", " ", "'", "a"}, true), "hi 'a");
  EXPECT_EQ(spoken({"\u2581hola", ".", "\u2581", "\u00BF", "Qu\u00E9", "\u2581tal", "?"}, false),
            "hola. \u00BFQu\u00E9 tal?");
  EXPECT_EQ(spoken({"\u2581hola", ".", "\u2581\u00BF", "Qu\u00E9"}, false), "hola. \u00BFQu\u00E9");
  EXPECT_EQ(spoken({"\u2581said", "\u2581", "\"", "hello", "\""}, false), "said \"hello\"");
  EXPECT_EQ(spoken({"\u2581a", "\u2581(", "b", ")", "\u2581\u00AB", "c", "\u00BB"}, false), "a (b) \u00ABc\u00BB");
}

TEST(Words, BytesAreJoinedToCharacters) {
  text::StoredPieces pieces{.pieces = {}, .bpe = true};
  for (const char* byte : {"<0xC3>", "<0xA9>", "<0x21>"})
    pieces.pieces.push_back({.text = byte, .score = 0, .type = text::StoredPiece::kByte});
  pieces.pieces.push_back({.text = "\u2581caf", .score = 0, .type = text::StoredPiece::kNormal});
  const Vocabulary vocabulary = Vocabulary::from_pieces(pieces);
  const auto text = [&](std::vector<int32_t> ids) { return vocabulary.text(ids); };
  EXPECT_EQ(text({3, 0, 1, 2}), "caf\u00E9!");
  EXPECT_EQ(text({3, 0}), "caf");  // not yet
  EXPECT_EQ(text({1, 3, 0, 3, 2}), "caf caf!");
  const auto words = word_times(vocabulary, token_times(vocabulary, HeadKind::kRnnt, emissions({3, 0, 1, 2}, 1)));
  EXPECT_EQ(join_words(words), "caf\u00E9!");
}

// Merges in the order of their ranks, which is not the longest match.
TEST(PhraseLabels, FollowTheRanksOfMerges) {
  text::StoredPieces pieces{.pieces = {}, .bpe = true};
  const auto add = [&](const char* text, float score) {
    pieces.pieces.push_back({.text = text, .score = score, .type = text::StoredPiece::kNormal});
  };
  for (const char* one : {"\u2581", "a", "b", "c"}) add(one, -100);
  add("bc", -1);  // 4
  add("\u2581"
      "a",
      -2);        // 5
  add("ab", -3);  // 6
  add("\u2581"
      "ab",
      -4);  // 7
  const Vocabulary vocabulary = Vocabulary::from_pieces(pieces);
  EXPECT_EQ(*phrase_labels(vocabulary, "abc"), (std::vector<int32_t>{5, 4}));
  EXPECT_EQ(*phrase_labels(vocabulary, " ab  a "), (std::vector<int32_t>{7, 5}));
  EXPECT_EQ(phrase_labels(vocabulary, "abd").error().code, Code::kInvalidArgument);
  EXPECT_EQ(phrase_labels(vocabulary, "  ").error().code, Code::kInvalidArgument);
  EXPECT_EQ(phrase_labels(vocabulary, "a\xFF").error().code, Code::kInvalidArgument);
  EXPECT_EQ(phrase_labels(vocabulary, std::string(kMaxPhraseBytes + 1, 'a')).error().code, Code::kLimitExceeded);
}

TEST(PhraseLabels, WithoutRanksAreTheFewest) {
  const Vocabulary pieces = Vocabulary::from_labels(kPieces, false);
  EXPECT_EQ(*phrase_labels(pieces, "hello world"), (std::vector<int32_t>{kHe, kLlo, kWorld}));
  EXPECT_FALSE(phrase_labels(pieces, "hello you").has_value());
  EXPECT_FALSE(phrase_labels(pieces, "<EOU>").has_value());  // no phrase says a special
  const Vocabulary characters = Vocabulary::from_labels({" ", "a", "b"}, true);
  EXPECT_EQ(*phrase_labels(characters, "ab  ba"), (std::vector<int32_t>{1, 2, 0, 2, 1}));
}

}  // namespace
}  // namespace syrinx::transducer
