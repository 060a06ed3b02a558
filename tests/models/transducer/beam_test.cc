// Beam search against the maker's, and the limits of its options.
#include "models/transducer/beam.h"

#include <gtest/gtest.h>

#include <cmath>

#include "decoding_fixture.h"

namespace syrinx::transducer {
namespace {

class Beam : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Beam, ::testing::ValuesIn(kDecodingCases),
                         [](const auto& p) { return std::string(p.param); });

// The maker's time of a label under TDT is where it ends.
TEST_P(Beam, HypothesesScoresAndTimesAreTheMakers) {
  const DecodingCase c(GetParam());
  ThreadTeam team(2);
  nn::Runner runner(team);
  auto decoder = BeamDecoder::make(c.weights(), runner, {});
  ASSERT_TRUE(decoder.has_value()) << decoder.error().message;
  const std::vector<Hypothesis> found = (*decoder)->decode(c.frames());
  const std::vector<float> scores = c.floats("beam.scores");
  ASSERT_EQ(found.size(), scores.size());
  for (size_t i = 0; i < found.size(); ++i) {
    std::vector<int32_t> labels, frames;
    for (const Emission& emission : found[i].emissions) {
      labels.push_back(emission.label);
      const uint32_t ahead = c.weights()->config.kind == HeadKind::kTdt ? emission.duration : 0;
      frames.push_back(static_cast<int32_t>(emission.frame + ahead));
      // No label is worth less than gamma below the best one, which has a part of all labels' and durations'.
      EXPECT_GT(emission.confidence, 0.0f);
      EXPECT_LE(emission.confidence, 1.0f);
    }
    EXPECT_EQ(labels, c.ids(fmt::format("beam.{}.labels", i))) << i;
    EXPECT_EQ(frames, c.ids(fmt::format("beam.{}.frames", i))) << i;
    EXPECT_NEAR(found[i].score, scores[i], 1e-5 * std::abs(scores[i])) << i;
  }
}

// The first recording leaves no state behind for the second.
TEST_P(Beam, RecordingsStandForThemselves) {
  const DecodingCase c(GetParam());
  ThreadTeam team(1);
  nn::Runner runner(team);
  auto decoder = BeamDecoder::make(c.weights(), runner, {.beam = 3, .normalise = false});
  ASSERT_TRUE(decoder.has_value()) << decoder.error().message;
  const std::vector<Hypothesis> first = (*decoder)->decode(c.frames());
  (*decoder)->decode(c.frames(20, 7));
  const std::vector<Hypothesis> again = (*decoder)->decode(c.frames());
  ASSERT_EQ(first.size(), again.size());
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].score, again[i].score);
    EXPECT_LE(first[i].score, first[i == 0 ? 0 : i - 1].score);
  }
  const std::vector<Hypothesis> nothing = (*decoder)->decode(c.frames(0, 0));
  ASSERT_EQ(nothing.size(), 1u);
  EXPECT_TRUE(nothing[0].emissions.empty());
}

// Behind each frame the team may be somebody else's, who may be searching too.
TEST_P(Beam, GivesWayBehindEachFrame) {
  const DecodingCase c(GetParam());
  ThreadTeam team(2);
  nn::Runner runner(team);
  auto decoder = BeamDecoder::make(c.weights(), runner, {}),
       other = BeamDecoder::make(c.weights(), runner, {.beam = 2});
  ASSERT_TRUE(decoder.has_value() && other.has_value());
  const std::vector<Hypothesis> alone = (*decoder)->decode(c.frames()), others = (*other)->decode(c.frames(3, 9));
  size_t calls = 0;
  const std::vector<Hypothesis> found = (*decoder)->decode(c.frames(), [&] {
    ++calls;
    EXPECT_EQ((*other)->decode(c.frames(3, 9)).front().score, others.front().score);
  });
  EXPECT_EQ(calls, c.frames().extent(0));
  ASSERT_EQ(found.size(), alone.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].score, alone[i].score);
    ASSERT_EQ(found[i].emissions.size(), alone[i].emissions.size());
    for (size_t n = 0; n < found[i].emissions.size(); ++n)
      EXPECT_EQ(found[i].emissions[n].label, alone[i].emissions[n].label);
  }
}

TEST(BeamOptions, HaveLimits) {
  const DecodingCase rnnt("rnnt"), tdt("tdt");
  ThreadTeam team(1);
  nn::Runner runner(team);
  const auto taken = [&](const DecodingCase& c, const BeamOptions& options) {
    const auto decoder = BeamDecoder::make(c.weights(), runner, options);
    return decoder.has_value() ? Code::kInternal : decoder.error().code;
  };
  EXPECT_EQ(taken(tdt, {.steps = 1}), Code::kInternal);
  EXPECT_EQ(taken(rnnt, {.steps = 1}), Code::kInvalidArgument);
  const BeamOptions bad[] = {{.beam = 1},
                             {.beam = 17},
                             {.beam = 16, .beta = 5},
                             {.steps = 5},
                             {.beam = 2, .beta = 17},
                             {.gamma = -1},
                             {.gamma = NAN},
                             {.temperature = 0},
                             {.temperature = INFINITY}};
  for (const BeamOptions& options : bad) EXPECT_EQ(taken(rnnt, options), Code::kInvalidArgument);
}

}  // namespace
}  // namespace syrinx::transducer
