// Loads of streams by steps that the test makes up.
#include "engine/schedule/stream_cost.h"

#include <gtest/gtest.h>

namespace syrinx {
namespace {

constexpr double kFrameS = 0.08;

// Steps of `first_s + more_s * streams` that serve so many each.
StepFigures rounds_of(int streams, int count, double first_s, double more_s) {
  const double took_s = first_s + more_s * streams;
  StepFigures steps;
  steps.took_ns = static_cast<int64_t>(took_s * count * 1e9);
  steps.rounds = {.rounds = static_cast<uint64_t>(count),
                  .members = static_cast<double>(streams * count),
                  .squares = static_cast<double>(streams * streams * count),
                  .took_s = took_s * count,
                  .took_members_s = took_s * count * streams};
  return steps;
}

TEST(StreamCost, NothingNotedIsNoLoad) {
  const StreamCost cost;
  EXPECT_EQ(cost.load(3), 0);
}

TEST(StreamCost, SingleStreamsCostTheAverage) {
  StreamCost cost;
  cost.note({.took_ns = 300'000'000}, 2);
  EXPECT_NEAR(cost.load(1), 0.15, 1e-9);
  EXPECT_NEAR(cost.load(4), 0.6, 1e-9);
  EXPECT_EQ(cost.load(0), 0);
}

TEST(StreamCost, CalibrationStandsUntilStepsCome) {
  StreamCost cost;
  cost.calibrate(0.5, 1);
  EXPECT_NEAR(cost.load(1), 0.5, 1e-9);
  for (int i = 0; i < 40; ++i) cost.note({.took_ns = 1'000'000'000}, 10);
  EXPECT_NEAR(cost.load(1), 0.1, 1e-3);
}

// Without it 30 streams would seem to cost 30 times the first one.
TEST(StreamCost, MoreInAStepCostLess) {
  StreamCost cost;
  for (const int streams : {1, 4, 8}) cost.note(rounds_of(streams, 10, 0.003, 0.002), kFrameS * streams * 10);
  for (const int streams : {1, 8, 30}) {
    EXPECT_NEAR(cost.load(streams), (0.003 + 0.002 * streams) / kFrameS, 1e-6) << streams;
  }
}

// Steps of one number of streams tell no line; the average is safe.
TEST(StreamCost, EqualStepsAreExtrapolatedByTheAverage) {
  StreamCost cost;
  cost.note(rounds_of(2, 20, 0.003, 0.002), kFrameS * 40);
  EXPECT_NEAR(cost.load(2), 0.007 / kFrameS, 1e-6);
  EXPECT_NEAR(cost.load(10), 0.035 / kFrameS, 1e-6);
}

TEST(StreamCost, OtherStepsOfStreamsCount) {
  StreamCost cost;
  StepFigures steps = rounds_of(4, 10, 0, 0.002);
  steps.took_ns += 100'000'000;
  cost.note(steps, kFrameS * 40);
  EXPECT_NEAR(cost.load(1), 0.002 / kFrameS + 0.1 / (kFrameS * 40), 1e-6);
}

TEST(StreamCost, OldStepsAreForgotten) {
  StreamCost cost;
  cost.note({.took_ns = 500'000'000}, 1);
  for (int i = 0; i < 10; ++i) cost.note({.took_ns = 3'000'000'000}, 30);
  EXPECT_NEAR(cost.load(1), 0.1, 1e-3);
}

// An hour of silence costs nothing to hear, and says nothing of the speech that may follow.
TEST(StreamCost, SilenceKeepsPartOfTheCost) {
  StreamCost cost;
  cost.calibrate(0.2, 1);
  for (int i = 0; i < 3600; ++i) cost.note({.took_ns = 1'000'000}, 1);
  EXPECT_NEAR(cost.load(4), 4 * 0.2 * StreamCost::kLeastPart, 1e-9);
  for (int i = 0; i < 20; ++i) cost.note({.took_ns = 1'000'000'000}, 5);
  EXPECT_NEAR(cost.load(1), 0.2, 0.01);
}

// The counts are read one after another, while rounds are counted.
TEST(StreamCost, MembersWithoutRoundsAreFinite) {
  StreamCost cost;
  StepFigures steps{.took_ns = 100'000'000};
  steps.rounds.members = 4;
  cost.note(steps, 1);
  EXPECT_NEAR(cost.load(2), 0.2, 1e-9);
}

}  // namespace
}  // namespace syrinx
