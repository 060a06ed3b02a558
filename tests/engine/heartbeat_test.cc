#include "engine/heartbeat.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace syrinx {
namespace {

using namespace std::chrono_literals;

TEST(Heartbeat, BeatsWhileNothingIsDone) {
  Heartbeat heartbeat([] {}, {.idle_ms = 2, .share = 0.5});
  for (int i = 0; i < 5000 && heartbeat.beats() < 3; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_GE(heartbeat.beats(), 3u);
}

// The clock stands still where work is noted, so no pause of the machine looks like idleness.
TEST(Heartbeat, WaitsForAPause) {
  ManualClock clock;
  clock.advance_ns(1'000'000'000);
  Heartbeat heartbeat([] {}, {.idle_ms = 1, .share = 0.5}, clock);
  heartbeat.note();
  std::this_thread::sleep_for(30ms);
  EXPECT_EQ(heartbeat.beats(), 0u);
  clock.advance_ns(2'000'000);
  for (int i = 0; i < 5000 && heartbeat.beats() == 0; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_GE(heartbeat.beats(), 1u);
}

// A beat of ten seconds leaves no room for a second one for many minutes.
TEST(Heartbeat, KeepsToItsShare) {
  ManualClock clock;
  Heartbeat heartbeat([&] { clock.advance_ns(10'000'000'000); }, {.idle_ms = 1, .share = 0.01}, clock);
  clock.advance_ns(2'000'000);
  for (int i = 0; i < 5000 && heartbeat.beats() == 0; ++i) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(30ms);
  EXPECT_EQ(heartbeat.beats(), 1u);
}

}  // namespace
}  // namespace syrinx
