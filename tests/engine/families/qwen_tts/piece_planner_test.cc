#include "engine/families/qwen_tts/piece_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace syrinx::qwen_tts {
namespace {

using testing::ElementsAre, testing::IsEmpty;

// A token a word.
Result<size_t> count_words(std::string_view text) {
  return text.empty() ? 0 : static_cast<size_t>(std::count(text.begin(), text.end(), ' ')) + 1;
}
// A token a byte.
Result<size_t> count_bytes(std::string_view text) { return text.size(); }

std::string words(size_t count, const std::string& word = "word") {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += (i > 0 ? " " : "") + word;
  return text;
}

std::vector<std::string> drain(PiecePlanner& planner, bool now) {
  std::vector<std::string> pieces;
  while (auto piece = planner.next(now)) pieces.push_back(std::move(*piece));
  return pieces;
}

TEST(PiecePlanner, SentencesAreJoinedToFullPieces) {
  PiecePlanner planner(count_words, 50);
  size_t offset = 0;
  for (int i = 0; i < 9; ++i) {
    const std::string sentence = words(15);
    ASSERT_TRUE(planner.add(sentence, offset));
    offset += sentence.size() + 1;
  }
  // The first one is shorter.
  EXPECT_THAT(drain(planner, false), ElementsAre(words(30), words(45), words(45)));
  EXPECT_THAT(drain(planner, true), ElementsAre(words(15)));
}

TEST(PiecePlanner, SentencesWithoutBlankBetweenAreJoinedSo) {
  PiecePlanner planner(count_words, 50);
  ASSERT_TRUE(planner.add("你好。", 0));
  ASSERT_TRUE(planner.add("再见。", 9));
  ASSERT_TRUE(planner.add("Bye.", 19));
  EXPECT_THAT(drain(planner, false), IsEmpty());
  EXPECT_THAT(drain(planner, true), ElementsAre("你好。再见。 Bye."));
}

TEST(PiecePlanner, LongSentenceIsCutBehindClauses) {
  PiecePlanner planner(count_words, 10);
  ASSERT_TRUE(planner.add(words(7) + ", " + words(7) + ", " + words(2) + ".", 0));
  EXPECT_THAT(drain(planner, true), ElementsAre(words(7) + ",", words(7) + ", " + words(2) + "."));
}

TEST(PiecePlanner, LongClauseIsCutBetweenWords) {
  PiecePlanner planner(count_words, 10);
  ASSERT_TRUE(planner.add(words(25), 0));
  EXPECT_THAT(drain(planner, true), ElementsAre(words(10), words(10), words(5)));
}

TEST(PiecePlanner, LongWordIsCutBetweenCharacters) {
  PiecePlanner planner(count_bytes, 5);
  ASSERT_TRUE(planner.add("你好吗abcdefg", 0));
  EXPECT_THAT(drain(planner, true), ElementsAre("你", "好", "吗ab", "cdefg"));
}

TEST(PiecePlanner, CharacterOfTooManyTokensIsKeptWhole) {
  PiecePlanner planner(count_bytes, 1);
  ASSERT_TRUE(planner.add("你a", 0));
  EXPECT_THAT(drain(planner, true), ElementsAre("你", "a"));
}

TEST(PiecePlanner, ControlCharactersBecomeBlanks) {
  PiecePlanner planner(count_words, 10);
  ASSERT_TRUE(planner.add(std::string("\x01one\x00\x1b two\n\nthree\x7f", 18), 0));
  EXPECT_THAT(drain(planner, true), ElementsAre("one two three"));
}

TEST(PiecePlanner, TextWithoutWordsIsLeftOut) {
  PiecePlanner planner(count_words, 10);
  ASSERT_TRUE(planner.add("...!", 0));
  ASSERT_TRUE(planner.add("\U0001F600", 5));
  ASSERT_TRUE(planner.add("", 10));
  ASSERT_TRUE(planner.add("7", 11));
  EXPECT_THAT(drain(planner, true), ElementsAre("7"));
  EXPECT_EQ(planner.left_out(), 5u);
}

TEST(PiecePlanner, HugeSentenceTakesLinearTime) {
  size_t counted = 0;
  PiecePlanner planner(
      [&](std::string_view text) {
        counted += text.size();
        return count_words(text);
      },
      20);
  ASSERT_TRUE(planner.add(words(100000), 0));
  EXPECT_EQ(drain(planner, true).size(), 5000u);
  EXPECT_LT(counted, size_t{5000} * 4096 * 16);
}

}  // namespace
}  // namespace syrinx::qwen_tts
