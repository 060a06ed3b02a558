// Marks in a text: what is one, what is none, however the text arrives.
#include "engine/speech/marked_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace syrinx {
namespace {

using testing::HasSubstr;
using Kind = MarkedText::Mark::Kind;

struct Read {
  std::string written;  // text, and of each mark {seconds} or {voice}
  std::vector<size_t> offsets, lines;
  Status status;
};

// Takes all that is certain after every `step` bytes.
Read read(std::string_view text, size_t step = SIZE_MAX, bool plain = false) {
  MarkedText marked(plain);
  Read read;
  for (bool finished = false;;) {
    marked.take_text(read.written);
    if (marked.at_mark()) {
      const auto mark = marked.take_mark();
      if (!mark) {
        read.status = tl::unexpected(mark.error());
        return read;
      }
      read.written += mark->kind == Kind::kPause ? fmt::format("{{{}}}", mark->pause_s) : "{" + mark->voice + "}";
      read.offsets.push_back(marked.offset());
      read.lines.push_back(mark->line);
      continue;
    }
    if (finished) return read;
    marked.feed(text.substr(0, step));
    text.remove_prefix(std::min(step, text.size()));
    finished = text.empty();
    if (finished) marked.finish();
  }
}

TEST(MarkedText, FindsPausesAndVoices) {
  const Read made = read("a[pause:500ms]b\n\n[voice: Ann_2]c [pause: 1.5s ]\n[voice:]d");
  ASSERT_TRUE(made.status) << made.status.error().message;
  EXPECT_EQ(made.written, "a{0.5}b\n\n{Ann_2}c {1.5}\n{}d");
  EXPECT_EQ(made.offsets, (std::vector<size_t>{14, 31, 47, 56}));
  EXPECT_EQ(made.lines, (std::vector<size_t>{1, 3, 3, 4}));
}

TEST(MarkedText, LeavesEverythingElse) {
  for (const char* text :
       {"", "[", "\\", "[pause]", "[Pause:1s]", "[word](/wˈɜɹd/) [pau", "a[b] \\n \\[x] [voic", "[[]"}) {
    const Read made = read(text);
    EXPECT_TRUE(made.status) << text;
    EXPECT_EQ(made.written, text);
  }
  EXPECT_EQ(read("[[pause:0s]]").written, "[{0}]");
  EXPECT_EQ(read("\\[pause:1s] \\\\[voice:x]").written, " [pause:1s] \\ [voice:x]");
  EXPECT_EQ(read("[pause:1s]\\[voice:x", SIZE_MAX, /*plain=*/true).written, "[pause:1s]\\[voice:x");
}

TEST(MarkedText, IsTheSameHoweverItArrives) {
  for (const char* text : {"a[pause:500ms]b\n[voice: Ann]c \\[pause:1s][voice:]\\", "x [pau", "[voice:a][voice:b]",
                           "é[pause:x]", "[voice:\n]", "a\n[pause:9"}) {
    const Read whole = read(text);
    for (size_t step = 1; step < 12; ++step) {
      SCOPED_TRACE(fmt::format("'{}' by {}", text, step));
      const Read made = read(text, step);
      EXPECT_EQ(made.written, whole.written);
      EXPECT_EQ(made.offsets, whole.offsets);
      EXPECT_EQ(made.lines, whole.lines);
      EXPECT_EQ(made.status.has_value(), whole.status.has_value());
    }
  }
}

TEST(MarkedText, RefusesInvalidMarks) {
  for (const char* mark :
       {"[pause:]", "[pause:1]", "[pause:1m]", "[pause:-1s]", "[pause:nans]", "[pause:61s]", "[pause:1e9s]",
        "[pause:60001ms]", "[pause:infs]", "[pause:1s\n]", "[pause:1s", "[voice:ann"}) {
    const Read made = read("one\ntwo " + std::string(mark));
    ASSERT_FALSE(made.status) << mark;
    EXPECT_EQ(made.written, "one\ntwo ");
    EXPECT_EQ(made.status.error().code, Code::kInvalidArgument);
    EXPECT_THAT(made.status.error().message, HasSubstr("line 2 of the text"));
    EXPECT_THAT(made.status.error().message, HasSubstr("to have it read"));
  }
  // A mark that is too long is refused before the rest has come.
  MarkedText marked;
  marked.feed("[voice:" + std::string(MarkedText::kMaxMarkBytes, 'a'));
  std::string text;
  marked.take_text(text);
  ASSERT_TRUE(marked.at_mark());
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(marked.take_mark());
  EXPECT_EQ(marked.offset(), 0u);
  EXPECT_EQ(read("[pause:60s][pause:60000ms]").written, "{60}{60}");
}

}  // namespace
}  // namespace syrinx
