// A transcription beside a row of the maker's (tools/reference/whisper_tiny.py, heard()).
#pragma once

#include "models/whisper/transcriber.h"
#include "small.h"

namespace syrinx::whisper {

// Noise whose loudness changes every 1600 samples.
inline std::vector<float> sound(uint32_t seed, size_t samples) {
  test::Draws draws(seed);
  const std::vector<float> loudness = draws.floats(samples / 1600 + 1);
  std::vector<float> values = draws.floats(samples, -0.5, 0.5);
  for (size_t i = 0; i < samples; ++i) values[i] *= loudness[i / 1600];
  return values;
}

inline void expect_words(const Segment& segment, const Json::Array& expected) {
  ASSERT_EQ(segment.words.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const Json::Array& word = *expected[i].array();
    EXPECT_EQ(segment.words[i].text, *word[0].string());
    EXPECT_NEAR(segment.words[i].start_s, test::number(word[1]), 1e-9);
    EXPECT_NEAR(segment.words[i].end_s, test::number(word[2]), 1e-9);
    EXPECT_NEAR(segment.words[i].probability, test::number(word[3]), 1e-4);
    const Json::Array& tokens = *word[4].array();
    ASSERT_EQ(segment.words[i].token_times.size(), tokens.size());
    for (size_t t = 0; t < tokens.size(); ++t) {
      const TokenTime& token = segment.words[i].token_times[t];
      EXPECT_NEAR(token.start_s, test::number((*tokens[t].array())[0]), 1e-4);
      EXPECT_NEAR(token.end_s, test::number((*tokens[t].array())[1]), 1e-4);
      EXPECT_NEAR(token.probability, test::number((*tokens[t].array())[2]), 1e-4);
    }
  }
}

struct HeardCounts {
  size_t tokens = 0, words = 0;
};

// Asks for what the row asks, at temperature 0, and compares all segments.
inline HeardCounts expect_row(Transcriber& transcriber, const Json& row, TranscriberSettings settings = {}) {
  using namespace test;
  settings.decode.temperatures = {0};
  settings.decode.stop_loops = false;
  settings.language = transcriber.vocabulary().tokens.find_language(string_of(row, "language"));
  EXPECT_EQ(settings.language == nullptr, string_of(row, "language").empty());
  settings.translate = truth(row, "translate");
  settings.words = truth(row, "words");
  settings.long_form.condition_on_previous = truth(row, "condition");
  const auto heard =
      transcriber.transcribe(sound(static_cast<uint32_t>(whole(row, "seed")), whole(row, "samples")), settings);
  EXPECT_TRUE(heard.has_value()) << heard.error().message;
  const std::vector<Segment> segments = heard ? *heard : std::vector<Segment>();
  const Json::Array& expected = list(row, "segments");
  EXPECT_GE(segments.size(), expected.size());
  EXPECT_EQ(segments.size() == expected.size(), truth(row, "all"));
  HeardCounts counts;
  for (size_t s = 0; s < std::min(segments.size(), expected.size()); ++s) {
    SCOPED_TRACE(s);
    EXPECT_EQ(segments[s].tokens, ids_of(expected[s], "ids"));
    EXPECT_EQ(segments[s].text, string_of(expected[s], "text"));
    EXPECT_NEAR(segments[s].start_s, number(expected[s], "start"), 1e-4);
    EXPECT_NEAR(segments[s].end_s, number(expected[s], "end"), 1e-4);
    EXPECT_NEAR(segments[s].no_speech, number(expected[s], "no_speech"), 1e-6);
    EXPECT_NEAR(segments[s].compression_ratio, number(expected[s], "ratio"), 1e-5);
    expect_words(segments[s], list(expected[s], "words"));
    counts.tokens += segments[s].tokens.size();
    counts.words += segments[s].words.size();
  }
  return counts;
}

}  // namespace syrinx::whisper
