// Tokens and words with their times, and phrases as labels.
#include "models/transducer/words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "allocation_count.h"
#include "base/json.h"
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

// As Chinese is written, or a damaged model says: one word with a mark behind every label, spelled once.
TEST(Words, AMarkDoesNotSpellItsWordAgain) {
  const Vocabulary vocabulary = Vocabulary::from_labels(kPieces, false);
  std::vector<int32_t> labels = {kHe};
  for (int i = 0; i < 2000; ++i) labels.insert(labels.end(), {kLlo, kComma});
  const auto tokens = token_times(vocabulary, HeadKind::kRnnt, emissions(labels, 1));
  const size_t before = allocation_count();
  const auto words = word_times(vocabulary, tokens);
  if (allocations_are_counted()) {
    EXPECT_LT(allocation_count() - before, 200u);
  }
  ASSERT_EQ(words.size(), 1u);
  EXPECT_EQ(words[0].text.size(), 2 + 4 * 2000u);
  EXPECT_EQ(words[0].count, labels.size());
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
  const auto tokens = token_times(vocabulary, HeadKind::kRnnt, emissions({3, 0, 1, 2}, 1));
  EXPECT_EQ(token_texts(vocabulary, tokens), (std::vector<std::string>{"caf", "", "\u00E9", "!"}));
  const auto broken = token_times(vocabulary, HeadKind::kRnnt, emissions({0, 3, 1, 0, 2}, 1));
  EXPECT_EQ(token_texts(vocabulary, broken), (std::vector<std::string>{"", "caf", "", "", "!"}));
  // However many bytes spell nothing, what each costs is the same, and the character behind them is found.
  constexpr size_t kMany = 30000;
  std::vector<TokenTime> many(kMany, tokens[1]);
  many.push_back(tokens[2]);
  const std::vector<std::string> texts = token_texts(vocabulary, many);
  ASSERT_EQ(texts.size(), kMany + 1);
  EXPECT_EQ(texts.back(), "\u00E9");
  EXPECT_TRUE(std::all_of(texts.begin(), texts.end() - 1, [](const std::string& text) { return text.empty(); }));
  EXPECT_EQ(vocabulary.text(std::vector<int32_t>(kMany, tokens[1].label)), "");
  const auto words = word_times(vocabulary, tokens);
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

// Ids of SentencePiece's own package for a model that it trained (tools/reference/sentencepiece_pieces.py).
TEST(PhraseLabels, AreTheIdsOfTheMaker) {
  const auto content = [](const std::string& name) {
    std::ifstream file(std::string(SYRINX_TEST_DATA) + "/text/" + name, std::ios::binary);
    EXPECT_TRUE(file.good()) << name;
    return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  };
  const std::string model = content("bpe.model");
  auto pieces = text::read_sentencepiece_pieces(std::as_bytes(std::span(model)), "bpe.model");
  ASSERT_TRUE(pieces.has_value()) << pieces.error().message;
  const Vocabulary vocabulary = Vocabulary::from_pieces(std::move(*pieces));
  EXPECT_TRUE(vocabulary.is_special(vocabulary.find("<EOU>")));
  EXPECT_FALSE(vocabulary.is_special(vocabulary.find("mm-hm")));
  const auto said = parse_json(content("bpe.json"), "bpe.json");
  ASSERT_TRUE(said.has_value()) << said.error().message;
  const Json::Array& phrases = *said->find("phrases")->array();
  ASSERT_GT(phrases.size(), 100u);
  for (const Json& phrase : phrases) {
    const std::string& text = *phrase.find("text")->string();
    std::vector<int32_t> expected;
    for (const Json& id : *phrase.find("ids")->array()) expected.push_back(static_cast<int32_t>(*id.whole()));
    const auto labels = phrase_labels(vocabulary, text);
    ASSERT_TRUE(labels.has_value()) << labels.error().message;
    EXPECT_EQ(*labels, expected) << text;
  }
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
