// Segments and words on both sides of pauses that were left out.
#include "engine/recognition/piece_times.h"

#include <gtest/gtest.h>

namespace syrinx {
namespace {

using silero::SpeechSpan;

constexpr uint64_t kSecond = 16000;
constexpr double kPad = 0.4;

SpeechSpan seconds(double begin, double end) {
  return {static_cast<uint64_t>(begin * kSecond), static_cast<uint64_t>(end * kSecond)};
}

// 1 to 4 s and 23 to 26 s of a recording, whose seam is at 3 s.
SpeechPiece two_stretches() { return {.spans = {seconds(1, 4), seconds(23, 26)}, .pad_s = kPad}; }

TranscriptSegment segment(double start_s, double end_s, std::vector<TranscriptWord> words) {
  TranscriptSegment out{.text = "", .start_s = start_s, .end_s = end_s, .tokens = {}, .words = std::move(words)};
  for (const TranscriptWord& word : out.words) append_word(out.text, word);
  for (TranscriptWord& word : out.words) word.tokens = {static_cast<int32_t>(word.text.size())};
  for (const TranscriptWord& word : out.words)
    out.tokens.insert(out.tokens.end(), word.tokens.begin(), word.tokens.end());
  return out;
}

std::vector<TranscriptSegment> placed(const SpeechPiece& piece, std::vector<TranscriptSegment> segments) {
  const PieceTimes times(piece);
  const std::vector<size_t> stretches = times.stretches_of(piece_words(segments));
  return times.in_recording(std::move(segments), stretches);
}

void expect_times(const TranscriptSegment& got, double start_s, double end_s) {
  EXPECT_NEAR(got.start_s, start_s, 1e-9) << got.text;
  EXPECT_NEAR(got.end_s, end_s, 1e-9) << got.text;
}

TEST(PieceTimes, OneStretchMovesAll) {
  const auto got = placed({.spans = {seconds(7, 9)}, .pad_s = kPad}, {segment(-1, 5, {{"a", 0.5, 1, 1}})});
  ASSERT_EQ(got.size(), 1u);
  expect_times(got[0], 7, 9);  // a model may say more than there was
  EXPECT_DOUBLE_EQ(got[0].words[0].start_s, 7.5);
  EXPECT_DOUBLE_EQ(got[0].words[0].end_s, 8);
}

// A segment begins behind its pause though the model places it a little before, and ends before the next one.
TEST(PieceTimes, SegmentsKeepToTheirSides) {
  const auto got = placed(two_stretches(), {segment(0.4, 3.1, {{"Young", 0.5, 1, 1}, {"man.", 1, 2.5, 1}}),
                                            segment(2.8, 6, {{"He", 2.8, 3.5, 1}, {"said", 3.5, 5.5, 1}})});
  ASSERT_EQ(got.size(), 2u);
  expect_times(got[0], 1.4, 3.5);
  expect_times(got[1], 23, 26);
  EXPECT_DOUBLE_EQ(got[1].words[0].start_s, 23);
  EXPECT_DOUBLE_EQ(got[1].words[0].end_s, 23.5);
}

// The first word of a sentence, placed before the seam with both its ends, is spoken behind the pause.
TEST(PieceTimes, SentenceInTheSilenceBeginsBehind) {
  const auto got = placed(two_stretches(), {segment(0.5, 2.5, {{"man.", 0.5, 2.5, 1}}),
                                            segment(2.65, 5, {{"I", 2.65, 2.95, 1}, {"am", 2.95, 5, 1}})});
  ASSERT_EQ(got.size(), 2u);
  expect_times(got[1], 23, 25);
  EXPECT_DOUBLE_EQ(got[1].words[0].end_s, 23);
}

TEST(PieceTimes, LastWordsStayBeforeThePause) {
  const auto got = placed(two_stretches(), {segment(0.5, 3.3, {{"young", 0.5, 2.4, 1}, {"man.", 2.4, 3.3, 1}}),
                                            segment(3.3, 5, {{"I", 3.3, 3.8, 1}, {"am", 3.8, 5, 1}})});
  ASSERT_EQ(got.size(), 2u);
  expect_times(got[0], 1.5, 4);
  EXPECT_DOUBLE_EQ(got[0].words[1].start_s, 3.4);
  expect_times(got[1], 23.3, 25);
}

TEST(PieceTimes, ShortSentenceBehindThePauseStays) {
  const auto got = placed(two_stretches(), {segment(0.5, 2.5, {{"man.", 0.5, 2.5, 1}}),
                                            segment(3.02, 5, {{"No.", 3.02, 3.3, 1}, {"I", 3.35, 5, 1}})});
  ASSERT_EQ(got.size(), 2u);
  expect_times(got[1], 23.02, 25);
  const auto across = placed(two_stretches(), {segment(0.5, 2.5, {{"man.", 0.5, 2.5, 1}}),
                                               segment(2.9, 5, {{"No.", 2.9, 3.3, 1}, {"I", 3.35, 5, 1}})});
  ASSERT_EQ(across.size(), 2u);
  expect_times(across[1], 23, 25);
}

// Though more of its last word is placed behind the seam.
TEST(PieceTimes, SentenceLastsIntoTheSilence) {
  const auto got = placed(two_stretches(), {segment(0.5, 3.3, {{"young", 0.5, 2.8, 1}, {"man.", 2.8, 3.3, 1}}),
                                            segment(3.35, 5, {{"I", 3.35, 3.8, 1}, {"am", 3.8, 5, 1}})});
  ASSERT_EQ(got.size(), 2u);
  expect_times(got[0], 1.5, 4);
  expect_times(got[1], 23.35, 25);
}

TEST(PieceTimes, SegmentAcrossALongPauseIsCut) {
  auto whole = segment(0.5, 5.5, {{"one", 0.5, 2, 1}, {"three", 2, 3.1, 1}, {"fifteen", 3.1, 5.5, 1}});
  whole.words[1].timed_tokens = {{1, "three", 2, 3.1, 1}};
  const auto got = placed(two_stretches(), {whole});
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].text, "one three");
  EXPECT_EQ(got[0].tokens, (std::vector<int32_t>{3, 5}));
  expect_times(got[0], 1.5, 4);
  EXPECT_DOUBLE_EQ(got[0].words[1].timed_tokens[0].end_s, 4);
  EXPECT_EQ(got[1].text, "fifteen");
  EXPECT_EQ(got[1].tokens, std::vector<int32_t>{7});
  expect_times(got[1], 23.1, 25.5);
}

// Chinese has no blanks, and the text is joined without them again.
TEST(PieceTimes, TextWithoutBlanksIsCut) {
  auto whole = segment(0.5, 5, {{"我是人", 0.5, 2.5, 1}, {"他", 3.2, 3.6, 1}, {"来了。", 3.6, 5, 1}});
  for (size_t i = 1; i < 3; ++i) whole.words[i].spaced = false;
  whole.text = "我是人他来了。";
  const Transcript got{.language = "zh", .audio_s = 30, .segments = placed(two_stretches(), {whole})};
  ASSERT_EQ(got.segments.size(), 2u);
  expect_times(got.segments[0], 1.5, 3.5);
  EXPECT_EQ(got.segments[1].text, "他来了。");
  expect_times(got.segments[1], 23.2, 25);
  EXPECT_EQ(got.text(), whole.text);
}

TEST(PieceTimes, ShortPausesCutNothing) {
  const SpeechPiece near{.spans = {seconds(1, 4), seconds(4.9, 8)}, .pad_s = kPad};
  EXPECT_EQ(placed(near, {segment(0, 5, {{"one", 0, 2, 1}, {"two", 4, 5, 1}})}).size(), 1u);
}

TEST(PieceTimes, PartsOfWordsStayTogether) {
  for (const char* const part : {"-disposed", "%"}) {
    auto unspaced = segment(0, 5, {{"one", 0, 2, 1}, {part, 4, 5, 1}});
    unspaced.words[1].spaced = false;
    const auto got = placed(two_stretches(), {unspaced});
    ASSERT_EQ(got.size(), 1u);
    expect_times(got[0], 1, 25);
  }
}

TEST(PieceTimes, SegmentsWithoutWordsGoByTheirTimes) {
  const auto got = placed(two_stretches(), {segment(0, 3.2, {}), segment(2.6, 5, {}), segment(0, 6, {})});
  ASSERT_EQ(got.size(), 3u);
  expect_times(got[0], 1, 4);
  expect_times(got[1], 23, 25);
  expect_times(got[2], 1, 26);
}

// A stretch that was cut for its length alone goes on.
TEST(PieceTimes, StretchesWithoutAPauseAreOne) {
  const SpeechPiece piece{.spans = {seconds(1, 4), seconds(4, 8)}, .pad_s = kPad};
  EXPECT_FALSE(PieceTimes(piece).has_pauses());
  EXPECT_TRUE(PieceTimes(two_stretches()).has_pauses());
  const auto got = placed(piece, {segment(2, 4, {{"a", 2.9, 3.5, 1}})});
  EXPECT_NEAR(got[0].words[0].start_s, 3.9, 1e-9);
  EXPECT_NEAR(got[0].words[0].end_s, 4.5, 1e-9);
}

TEST(PieceTimes, PausesAreToldForWords) {
  const SpeechPiece piece{.spans = {seconds(0, 1), seconds(1.5, 2.5), seconds(9, 10)}, .pad_s = 0};
  const PieceTimes times(piece);
  const std::vector<PieceTimes::Word> words = {{0, 1, true}, {1, 2, false}, {2, 3, false}};
  const auto stretches = times.stretches_of(words);
  EXPECT_EQ(stretches, (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(times.follow_pauses(stretches), (std::vector<bool>{false, false, true}));
}

}  // namespace
}  // namespace syrinx
