#include "engine/families/qwen_tts/running_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "engine/families/qwen_tts/qwen_model.h"
#include "text/unicode.h"

namespace syrinx::qwen_tts {
namespace {

using testing::ElementsAre, testing::IsEmpty;
using Tokens = std::vector<int32_t>;

// A token a character.
Result<Tokens> characters(std::string_view text) {
  Tokens tokens;
  for (size_t at = 0; at < text.size();) tokens.push_back(static_cast<int32_t>(text::decode(text, at)));
  return tokens;
}

std::string text_of(const Tokens& tokens) {
  std::string text;
  for (const int32_t token : tokens) text::append_utf8(text, static_cast<char32_t>(token));
  return text;
}

struct Pieces {
  std::vector<Tokens> tokens = {};
  size_t left_out = 0;
  std::vector<std::string> texts() const {
    std::vector<std::string> all;
    for (const Tokens& each : tokens) all.push_back(text_of(each));
    return all;
  }
};

// Sentences, each of which comes `step` characters at a time.
Pieces pieces(const std::vector<std::string>& sentences, size_t max_tokens, size_t step,
              const RunningText::Encode& encode = characters) {
  RunningText running(encode, max_tokens);
  Pieces made;
  Tokens known;
  const auto drain = [&] {
    for (;;) {
      const Tokens& tokens = running.piece().tokens;
      EXPECT_TRUE(tokens.size() >= known.size() && std::equal(known.begin(), known.end(), tokens.begin()));
      known = tokens;
      if (!running.piece().ended) return;
      EXPECT_LE(tokens.size(), max_tokens + RunningText::kMostMarks);
      made.tokens.push_back(tokens);
      known.clear();
      EXPECT_TRUE(running.go_on());
    }
  };
  size_t offset = 0;
  for (const std::string& sentence : sentences) {
    size_t count = 0;
    for (size_t at = 0; at < sentence.size();) {
      text::decode(sentence, at);
      if (++count % step != 0 && at < sentence.size()) continue;
      EXPECT_TRUE(running.hear(std::string_view(sentence).substr(0, at), offset, at == sentence.size()));
      drain();
    }
    offset += sentence.size() + 1;
  }
  running.rest();
  drain();
  made.left_out = running.left_out();
  return made;
}

TEST(RunningText, StretchesAreCertainBeforeBlanksAndMarks) {
  RunningText running(characters, 100);
  const auto heard = [&](std::string_view text, bool ended = false) {
    EXPECT_TRUE(running.hear(text, 0, ended));
    return text_of(running.piece().tokens);
  };
  EXPECT_EQ(heard("Hel"), "");
  EXPECT_EQ(heard("Hello"), "");
  EXPECT_EQ(heard("Hello, "), "Hello");
  EXPECT_EQ(heard("Hello, w"), "Hello,");
  EXPECT_EQ(heard("Hello, world 1,0"), "Hello, world 1");
  EXPECT_EQ(heard("Hello, world 1,000.", true), "Hello, world 1,000.");
  running.rest();
  EXPECT_TRUE(running.piece().ended);
}

TEST(RunningText, PieceEndsBehindSentenceFromHalfOn) {
  for (const size_t step : {1u, 3u, 100u})
    EXPECT_THAT(pieces({"One.", "Two two.", "Three.", "Four."}, 20, step).texts(),
                ElementsAre("One. Two two.", "Three. Four."));
}

TEST(RunningText, SentencesWithoutBlankStayTogether) {
  RunningText running(characters, 100);
  ASSERT_TRUE(running.hear("你好。", 0, true));
  ASSERT_TRUE(running.hear("再见。", 9, true));
  ASSERT_TRUE(running.hear("Bye.", 20, true));
  EXPECT_EQ(text_of(running.piece().tokens), "你好。再见。 Bye.");
  ASSERT_TRUE(running.hear("—", 25, true));
  ASSERT_TRUE(running.hear("Oh.", 28, true));  // the blank before what is left out stays
  EXPECT_EQ(text_of(running.piece().tokens), "你好。再见。 Bye. Oh.");
}

TEST(RunningText, EndsBehindItsLastWholeSentence) {
  RunningText running(characters, 100);
  ASSERT_TRUE(running.hear("One two th", 0, false));
  EXPECT_FALSE(running.end_behind_sentence(0));
  ASSERT_TRUE(running.hear("One two three.", 0, true));
  ASSERT_TRUE(running.hear("Four five si", 15, false));
  EXPECT_EQ(text_of(running.piece().tokens), "One two three. Four five");
  EXPECT_FALSE(running.end_behind_sentence(15));  // the next sentence is in use
  EXPECT_TRUE(running.end_behind_sentence(14));
  EXPECT_TRUE(running.piece().ended);
  EXPECT_EQ(text_of(running.piece().tokens), "One two three.");
  EXPECT_FALSE(running.end_behind_sentence(0));
  ASSERT_TRUE(running.go_on());
  EXPECT_EQ(text_of(running.piece().tokens), "Four five");
  ASSERT_TRUE(running.hear("Four five six.", 15, true));
  EXPECT_EQ(text_of(running.piece().tokens), "Four five six.");
  EXPECT_EQ(running.left_out(), 0u);
}

TEST(RunningText, RestEndsThePieceBeforeMarksThatBeginASentence) {
  RunningText running(characters, 100);
  ASSERT_TRUE(running.hear("One.", 0, true));
  ASSERT_TRUE(running.hear("- ", 5, false));
  running.rest();
  EXPECT_TRUE(running.piece().ended);
  EXPECT_EQ(text_of(running.piece().tokens), "One.");
}

TEST(RunningText, LongSentenceIsCutBehindClauseOrWord) {
  for (const size_t step : {1u, 5u, 100u}) {
    EXPECT_THAT(pieces({"aa, bbb bbb bbb ccc, dd dd."}, 20, step).texts(),
                ElementsAre("aa, bbb bbb bbb ccc,", "dd dd."));
    EXPECT_THAT(pieces({"aaaa bbbb cccc dddd eeee."}, 20, step).texts(), ElementsAre("aaaa bbbb cccc dddd", "eeee."));
    EXPECT_THAT(pieces({"abcdefghijklmnopqrst."}, 8, step).texts(), ElementsAre("abcdefgh", "ijklmnop", "qrst."));
  }
}

TEST(RunningText, WideMarksEndPieces) {
  for (const size_t step : {1u, 4u, 100u})
    EXPECT_THAT(pieces({"你好你好。今天天气很好，我们去。公园吧"}, 12, step).texts(),
                ElementsAre("你好你好。今天天气很好，", "我们去。公园吧"));
}

TEST(RunningText, MarksFitBehindFullPiece) {
  EXPECT_THAT(pieces({"abcd efghi?!", "Next."}, 10, 1).texts(), ElementsAre("abcd efghi?!", "Next."));
}

TEST(RunningText, SentencesWithoutWordAreLeftOut) {
  for (const size_t step : {1u, 100u}) {
    const Pieces made = pieces({"...", "\x01one\t two\x7f\n\n three.", "(-) !", "7"}, 40, step);
    EXPECT_THAT(made.texts(), ElementsAre("one two three. 7"));
    EXPECT_EQ(made.left_out, 8u);
  }
  EXPECT_THAT(pieces({"...", "?"}, 40, 1).tokens, IsEmpty());
}

TEST(RunningText, RestEndsNoSentenceThatGoesOn) {
  RunningText running(characters, 100);
  running.rest();
  EXPECT_FALSE(running.piece().ended);
  ASSERT_TRUE(running.hear("One two", 0, false));
  running.rest();
  EXPECT_FALSE(running.piece().ended);
}

// With the tokenizer of a checkpoint: pieces and tokens do not depend on arrival, and are those of the pieces' texts.
TEST(RunningText, TokensAreThoseOfWholePieces) {
  const auto model = QwenModel::load(std::string(SYRINX_TEST_DATA) + "/qwen_tts/base", {});
  ASSERT_TRUE(model) << model.error().message;
  const Tokenizer& tokenizer = (*model)->tokenizer();
  const auto encode = [&](std::string_view text) { return tokenizer.encode_stretch(text); };
  const std::vector<std::string> parts = {
      "a",  "B",       "the", "hello", "it's", " ",  " ", " ",  ", ", ".",  "...", "?!", "(", ")", "-", "3",
      "14", "e\u0301", "é",   "你",    "好，", "。", "ก", "한", "/",  "\n", "\t",  "\"", "’", "_", "😀", "\u0327"};
  std::mt19937 random(7);
  for (int n = 0; n < 300; ++n) {
    std::vector<std::string> sentences(1 + random() % 4);
    for (std::string& sentence : sentences) {
      sentence = "W";
      for (size_t i = random() % 60; i > 0; --i) sentence += parts[random() % parts.size()];
      sentence += "x.";
    }
    const size_t max_tokens = 4 + random() % 80;
    const Pieces whole = pieces(sentences, max_tokens, 10000, encode);
    for (const size_t step : {size_t{1}, 1 + random() % 9}) {
      const Pieces parted = pieces(sentences, max_tokens, step, encode);
      EXPECT_EQ(parted.tokens, whole.tokens);
      EXPECT_EQ(parted.left_out, whole.left_out);
    }
    for (const Tokens& tokens : whole.tokens)
      EXPECT_EQ(*tokenizer.encode(tokenizer.bpe().decode(tokens)), tokens) << tokenizer.bpe().decode(tokens);
  }
}

}  // namespace
}  // namespace syrinx::qwen_tts
