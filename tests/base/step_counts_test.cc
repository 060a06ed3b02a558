#include "base/step_counts.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/due.h"

namespace syrinx {
namespace {

TEST(StepCounts, FillTheirBucketsUpToTheBounds) {
  StepCounts counts;
  const int64_t last_ns = StepFigures::kBoundsNs.back();
  counts.note(0, false);
  counts.note(1'000'000, true);
  counts.note(1'000'001, false);
  counts.note(last_ns, false);
  counts.note(last_ns + 1, true);
  const StepFigures figures = counts.read();
  std::array<uint64_t, StepFigures::kBoundsNs.size() + 1> expected{};
  expected[0] = 2;
  expected[1] = 1;
  expected[expected.size() - 2] = expected.back() = 1;
  EXPECT_EQ(figures.buckets, expected);
  EXPECT_EQ(figures.count(), 5u);
  EXPECT_EQ(figures.took_ns, 2'000'002 + 2 * last_ns);
  EXPECT_EQ(figures.late, 2u);

  counts.note(1, true);
  const StepFigures more = counts.read().since(figures);
  EXPECT_EQ(more.count(), 1u);
  EXPECT_EQ(more.buckets[0], 1u);
  EXPECT_EQ(more.took_ns, 1);
  EXPECT_EQ(more.late, 1u);
}

TEST(StepCounts, LoseNothingThatThreadsNoteAtOnce) {
  constexpr int kThreads = 4, kNotes = 10000;
  StepCounts counts;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < kNotes; ++n) counts.note(3, n % 2 == 0);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counts.read().count(), uint64_t{kThreads} * kNotes);
  EXPECT_EQ(counts.read().took_ns, int64_t{3} * kThreads * kNotes);
  EXPECT_EQ(counts.read().late, uint64_t{kThreads} * kNotes / 2);
}

TEST(Due, OnlyDueStepsAreLate) {
  EXPECT_FALSE(is_late(100, 99));
  EXPECT_FALSE(is_late(100, 100));
  EXPECT_TRUE(is_late(100, 101));
  EXPECT_FALSE(is_late(kDueAtOnce, 101));
  EXPECT_FALSE(is_late(kNeverDue, 101));
}

// The first sound of a text was due when that came: its listener has heard nothing that it could fail to follow.
TEST(Due, NoGapIsHeardBeforeTheFirstSound) {
  EXPECT_EQ(gapless_until_ns(100, 99), 100);
  EXPECT_EQ(gapless_until_ns(100, 100), kNeverDue);
  EXPECT_EQ(gapless_until_ns(kDueAtOnce, 100), kNeverDue);
  EXPECT_EQ(gapless_until_ns(kNeverDue, 100), kNeverDue);
}

}  // namespace
}  // namespace syrinx
