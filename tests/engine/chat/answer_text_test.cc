#include "engine/chat/answer_text.h"

#include <gtest/gtest.h>

#include "engine/chat/answer_loop.h"

namespace syrinx {
namespace {

// The text as it comes, pieces joined by '|', and '.' where a stop text ended it.
std::string told(std::vector<std::string> stops, const std::vector<std::string>& pieces) {
  AnswerText answer(std::move(stops));
  std::string all;
  bool over = false;
  for (const std::string& piece : pieces) {
    std::string text;
    over = answer.push(piece, text);
    all += text + "|";
  }
  std::string rest;
  answer.finish(rest);
  return all + rest + (over ? "." : "");
}

TEST(AnswerText, ComesInWholeCharacters) {
  EXPECT_EQ(told({}, {"a", "b\xC3", "\xA9", "c"}), "a|b|é|c|");
  EXPECT_EQ(told({}, {"\xF0\x9F", "\x98", "\x80"}), "||😀|");
  EXPECT_EQ(told({}, {"a\xF0\x9F"}), "a|\uFFFD");
  EXPECT_EQ(told({}, {"a\xFFz\xC3", "b"}), "a\uFFFDz|\uFFFDb|");
}

TEST(AnswerText, EndsBeforeAStopText) {
  EXPECT_EQ(told({"END"}, {"one E", "N", "D two"}), "one |||.");
  EXPECT_EQ(told({"END"}, {"one E", "N", "d two"}), "one ||ENd two|");
  EXPECT_EQ(told({"END", "one"}, {"on", "e"}), "||.");
  EXPECT_EQ(told({"b", "ab"}, {"xab"}), "x|.");
  EXPECT_EQ(told({"é"}, {"a\xC3", "\xA9"}), "a||.");
  EXPECT_EQ(told({"aab"}, {"aaa", "b"}), "a||.");
  EXPECT_EQ(told({"END"}, {"x E"}), "x |E");
}

TEST(AnswerText, NothingFollowsTheEnd) {
  AnswerText answer({"."});
  std::string text;
  EXPECT_TRUE(answer.push("a.b", text));
  EXPECT_TRUE(answer.push("c", text));
  answer.finish(text);
  EXPECT_EQ(text, "a");
}

// Tokens until the loop is noticed, 0 where it is not within 2000: `before` tokens that differ, then rounds of a
// period.
size_t noticed(size_t before, size_t period, bool is_broken = false) {
  AnswerLoop loop;
  for (size_t n = 0; n < 2000; ++n) {
    size_t token = n < before ? 1000 + n : (n - before) % period;
    if (is_broken && n % 200 == 199) token = 5000 + n;
    if (loop.push(static_cast<int32_t>(token))) return n + 1;
  }
  return 0;
}

TEST(AnswerLoop, RepetitionIsNoticed) {
  for (const size_t period : {1, 2, 7, 64}) {
    EXPECT_EQ(noticed(0, period), AnswerLoop::kTokens + period);
    EXPECT_EQ(noticed(100, period), 100 + AnswerLoop::kTokens + period);
  }
}

TEST(AnswerLoop, OtherTextIsNone) {
  EXPECT_EQ(noticed(0, 65), 0u);
  EXPECT_EQ(noticed(2000, 1), 0u);
  EXPECT_EQ(noticed(0, 3, true), 0u);  // a list, say, of rows that differ
}

}  // namespace
}  // namespace syrinx
