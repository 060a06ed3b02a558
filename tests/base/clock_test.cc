#include "base/clock.h"

#include <gtest/gtest.h>

namespace syrinx {
namespace {

TEST(Clock, SystemNeverGoesBack) {
  const Clock& clock = system_clock();
  int64_t last = clock.now_ns();
  for (int i = 0; i < 1000; ++i) {
    const int64_t now = clock.now_ns();
    ASSERT_GE(now, last);
    last = now;
  }
  EXPECT_NEAR(clock.now_ms(), static_cast<double>(last) * 1e-6, 1000.0);
}

TEST(Clock, ManualStandsStill) {
  ManualClock clock;
  Stopwatch watch(clock);
  EXPECT_EQ(watch.elapsed_ms(), 0.0);
  clock.advance_ns(2'500'000);
  EXPECT_DOUBLE_EQ(watch.elapsed_ms(), 2.5);
  watch.restart();
  EXPECT_EQ(watch.elapsed_ms(), 0.0);
}

}  // namespace
}  // namespace syrinx
