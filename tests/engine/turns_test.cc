#include "engine/turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace syrinx {
namespace {

TEST(Turns, AreTakenInTheOrderOfAsking) {
  Turns turns;
  std::vector<int> order;
  std::vector<std::thread> threads;
  {
    const Turns::Turn held(turns);
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const Turns::Turn turn(turns);
        order.push_back(i);
      });
      while (turns.asking() < static_cast<uint64_t>(i) + 2) std::this_thread::yield();
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

// Whatever the order in which they ask; who is due at the same time in that of asking.
TEST(Turns, WhoIsDueFirstGoesFirst) {
  Turns turns;
  const std::vector<int64_t> due_ns = {500, kNeverDue, 300, 400, 300, kDueAtOnce, -7};
  std::vector<size_t> order;
  std::vector<std::thread> threads;
  {
    const Turns::Turn held(turns, 100);
    for (size_t i = 0; i < due_ns.size(); ++i) {
      threads.emplace_back([&, i] {
        const Turns::Turn turn(turns, due_ns[i]);
        order.push_back(i);
      });
      while (turns.asking() < i + 2) std::this_thread::yield();
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<size_t>{6, 5, 2, 4, 3, 0, 1}));
  EXPECT_EQ(turns.asking(), 0u);
}

// What is due goes before what is not and was asked for earlier, but not for ever; who gives way stands in line again.
TEST(Turns, BatchWorkWaitsForWhatIsDueButNotForEver) {
  Turns turns;
  std::vector<int> order;
  std::vector<std::thread> threads;
  {
    Turns::Turn held(turns);
    held.give_way();
    for (int i = 0; i < Turns::kDueInARow + 3; ++i) {
      threads.emplace_back([&, i] {
        const Turns::Turn turn(turns, i == 0 ? kNeverDue : 1000 + i);
        order.push_back(i);
      });
      while (turns.asking() < static_cast<uint64_t>(i) + 2) std::this_thread::yield();
    }
    held.give_way();
    order.push_back(-1);
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<int> expected;
  for (int i = 1; i <= Turns::kDueInARow; ++i) expected.push_back(i);
  expected.insert(expected.end(), {0, Turns::kDueInARow + 1, Turns::kDueInARow + 2, -1});
  EXPECT_EQ(order, expected);
}

TEST(Turns, WhoComesAgainStandsBehindWhoWaits) {
  Turns turns;
  std::atomic<int> inside{0};
  int last = -1;        // whose turn was before
  bool others = false;  // waited when it ended
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int n = 0; n < 200; ++n) {
        const Turns::Turn turn(turns);
        EXPECT_EQ(inside.fetch_add(1), 0);
        EXPECT_FALSE(last == i && others) << "came again before one who waited";
        last = i;
        others = turns.asking() > 1;
        inside.fetch_sub(1);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

constexpr int64_t kMs = 1'000'000;

// From its beginning to its end; batch work is none.
TEST(Turns, OfWorkThatIsDueAreSteps) {
  ManualClock clock;
  clock.advance_ns(1000 * kMs);
  Turns turns(clock);
  const auto take = [&](int64_t due_ns) {
    const Turns::Turn turn(turns, due_ns);
    clock.advance_ns(7 * kMs);
  };
  take(kNeverDue);
  EXPECT_EQ(turns.steps().count(), 0u);
  take(clock.now_ns() + 7 * kMs);
  EXPECT_EQ(turns.steps().late, 0u);
  take(clock.now_ns() + 6 * kMs);
  EXPECT_EQ(turns.steps().late, 1u);
  take(clock.now_ns() - 1);  // it waited too long
  EXPECT_EQ(turns.steps().late, 2u);
  take(kDueAtOnce);
  {
    Turns::Turn turn(turns, clock.now_ns() - 1);
    turn.set_deadline(kNeverDue);
    clock.advance_ns(kMs);
  }
  EXPECT_EQ(turns.steps().late, 2u);
  EXPECT_EQ(turns.steps().count(), 5u);
  EXPECT_EQ(turns.steps().buckets[3], 4u);  // up to 10 ms
  EXPECT_EQ(turns.steps().took_ns, 29 * kMs);
}

// What others do meanwhile is theirs.
TEST(Turns, WhoGivesWayBeginsAnotherStep) {
  ManualClock clock;
  Turns turns(clock);
  {
    Turns::Turn held(turns, 500);
    std::thread other([&] {
      const Turns::Turn turn(turns, 400);
      clock.advance_ns(100 * kMs);
    });
    while (turns.waiting() == 0) std::this_thread::yield();
    EXPECT_EQ(turns.waiting(), 1u);
    clock.advance_ns(kMs);
    held.give_way();
    other.join();
    EXPECT_EQ(turns.steps().count(), 2u);
    clock.advance_ns(2 * kMs);
  }
  EXPECT_EQ(turns.waiting(), 0u);
  EXPECT_EQ(turns.steps().count(), 3u);
  EXPECT_EQ(turns.steps().took_ns, 103 * kMs);
}

}  // namespace
}  // namespace syrinx
