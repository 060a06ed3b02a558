#include "engine/families/transducer/transducer_transcript.h"

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

// Marks that a model emits only behind the pause that ended their utterance; opening marks are not among them.
TEST(TransducerTranscript, MarksOfTheUtteranceBefore) {
  const auto vocabulary =
      transducer::Vocabulary::from_labels({"\u2581he", ".", "\u2581", "?", "(", "-", "\u2581-", "%", "\u2581#",
                                           "\u2581\u300A", "\u2581&", "5", "\u3002", "\u2581."},
                                          false);
  const auto left = [&](const std::vector<int32_t>& labels) {
    std::vector<TokenTime> tokens;
    for (const int32_t label : labels) tokens.push_back({.label = label});
    return behind_marks(vocabulary, tokens).size();
  };
  EXPECT_EQ(left({1, 3, 0, 1}), 2u);
  EXPECT_EQ(left({0, 1}), 2u);
  EXPECT_EQ(left({4, 0}), 2u);
  EXPECT_EQ(left({1}), 0u);
  EXPECT_EQ(left({}), 0u);
  EXPECT_EQ(left({12, 13, 0}), 1u);
  for (const int32_t part_of_a_word : {5, 6, 7, 8, 9, 10}) {
    EXPECT_EQ(left({part_of_a_word, 11}), 2u) << part_of_a_word;
    EXPECT_EQ(left({1, part_of_a_word, 0}), 2u) << part_of_a_word;
  }
  EXPECT_EQ(left({1, 13, 11}), 2u);  // ".5"
}

// Where a pause begins, the same second has two places; a mark without length lies in its word all the same.
TEST(TransducerTranscript, TokensStayInTheirWordsWhereAPauseIsPutIn) {
  TranscriptSegment segment;
  segment.end_s = 1;
  segment.words.push_back({.text = "he.", .start_s = 0, .end_s = 1});
  segment.words[0].timed_tokens = {{.id = 0, .text = "he", .start_s = 0, .end_s = 1},
                                   {.id = 1, .text = ".", .start_s = 1, .end_s = 1}};
  map_times(
      segment, [](double at_s) { return at_s < 1 ? at_s : at_s + 5; },
      [](double at_s) { return at_s <= 1 ? at_s : at_s + 5; });
  EXPECT_EQ(segment.end_s, 1);
  for (const TranscriptToken& token : segment.words[0].timed_tokens) EXPECT_EQ(token.end_s, 1) << token.text;
  EXPECT_EQ(segment.words[0].timed_tokens[1].start_s, 1);
}

}  // namespace
}  // namespace syrinx
