#include "engine/schedule/heartbeat.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"

namespace syrinx {
namespace {

using namespace std::chrono_literals;

TEST(Heartbeat, BeatsWhileNothingIsDone) {
  Heartbeat heartbeat([] { return 0.0; }, {.idle_ms = 2, .share = 0.5});
  for (int i = 0; i < 60000 && heartbeat.beats() < 3; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_GE(heartbeat.beats(), 3u);
}

// The clock stands still where work is noted, so no pause of the machine looks like idleness.
TEST(Heartbeat, WaitsForAPause) {
  ManualClock clock;
  clock.advance_ns(1'000'000'000);
  Heartbeat heartbeat([] { return 0.0; }, {.idle_ms = 1, .share = 0.5}, clock);
  heartbeat.note();
  std::this_thread::sleep_for(30ms);
  EXPECT_EQ(heartbeat.beats(), 0u);
  clock.advance_ns(2'000'000);
  for (int i = 0; i < 60000 && heartbeat.beats() == 0; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_GE(heartbeat.beats(), 1u);
}

// A beat of ten seconds leaves no room for a second one for many minutes.
TEST(Heartbeat, KeepsToItsShare) {
  ManualClock clock;
  Heartbeat heartbeat([] { return 10'000.0; }, {.idle_ms = 1, .share = 0.01}, clock);
  clock.advance_ns(2'000'000);
  for (int i = 0; i < 60000 && heartbeat.beats() == 0; ++i) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(30ms);
  EXPECT_EQ(heartbeat.beats(), 1u);
}

// Ten seconds of waiting for others put nothing off.
TEST(Heartbeat, WaitingIsNoWork) {
  ManualClock clock;
  const auto wait = [&] {
    clock.advance_ns(10'000'000'000);
    return 0.5;
  };
  Heartbeat heartbeat(wait, {.idle_ms = 1, .share = 0.5}, clock);
  clock.advance_ns(2'000'000);
  for (int i = 0; i < 60000 && heartbeat.beats() < 3; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_GE(heartbeat.beats(), 3u);
}

TEST(Heartbeat, OutlivesWhatABeatThrows) {
  std::vector<std::string> told;
  std::atomic<int> begun{0};
  set_log_sink([&](LogLevel, std::string_view message) { told.emplace_back(message); });
  {
    const auto fail_twice = [&]() -> double {
      const int before = begun++;
      if (before == 0) throw std::bad_alloc();
      if (before == 1) throw 7;
      return 0.0;
    };
    Heartbeat heartbeat(fail_twice, {.idle_ms = 1, .share = 0.5, .retry_ms = 2});
    for (int i = 0; i < 60000 && heartbeat.beats() == 0; ++i) std::this_thread::sleep_for(1ms);
    EXPECT_GE(heartbeat.beats(), 1u);
  }
  set_log_sink({});
  ASSERT_EQ(told.size(), 2u);
  EXPECT_NE(told[0].find("bad_alloc"), std::string::npos) << told[0];
}

}  // namespace
}  // namespace syrinx
