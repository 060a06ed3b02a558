#include "engine/transducer_transcript.h"

#include <gtest/gtest.h>

namespace syrinx {
namespace {

using transducer::TokenTime;
using transducer::WordTime;

TEST(TransducerTranscript, SegmentsEndWithSentencesAndAtSilences) {
  std::vector<TokenTime> tokens;
  for (int32_t i = 0; i < 6; ++i)
    tokens.push_back({.label = i, .begin = 10 * i, .end = 10 * i + 4, .confidence = i == 0 ? 0.5f : 1.0f});
  const auto word = [&](const char* text, size_t first, size_t count) {
    return WordTime{.text = text,
                    .begin = tokens[first].begin,
                    .end = tokens[first + count - 1].end,
                    .confidence = tokens[first].confidence,
                    .first = first,
                    .count = count};
  };
  std::vector<WordTime> words = {word("Well,", 0, 1), word("yes.\"", 1, 2), word("And", 3, 1), word("so", 4, 1),
                                 word("on", 5, 1)};
  words[4].begin += 100;
  words[4].end += 100;
  const auto segments = transcript_segments(tokens, words, {.frame_s = 0.1, .offset_s = 2, .words = true});
  ASSERT_EQ(segments.size(), 3u);
  EXPECT_EQ(segments[0].text, "Well, yes.\"");
  EXPECT_DOUBLE_EQ(segments[0].start_s, 2.0);
  EXPECT_DOUBLE_EQ(segments[0].end_s, 4.4);
  EXPECT_EQ(segments[0].tokens, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_FLOAT_EQ(segments[0].confidence, 2.5f / 3.0f);
  ASSERT_EQ(segments[0].words.size(), 2u);
  EXPECT_EQ(segments[0].words[1].text, "yes.\"");
  EXPECT_DOUBLE_EQ(segments[0].words[1].start_s, 3.0);
  EXPECT_FLOAT_EQ(segments[0].words[0].confidence, 0.5f);
  EXPECT_EQ(segments[1].text, "And so");
  EXPECT_EQ(segments[2].text, "on");
  EXPECT_DOUBLE_EQ(segments[2].end_s, 2 + 15.4);
  EXPECT_TRUE(transcript_segments({}, {}, {}).empty());
  EXPECT_EQ(transcript_segment(tokens, words, {}).text, "Well, yes.\" And so on");
  EXPECT_TRUE(transcript_segment(tokens, words, {}).words.empty());
}

}  // namespace
}  // namespace syrinx
