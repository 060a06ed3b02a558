#include "engine/schedule/turns.h"

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

// Whose turn nobody wants any more leaves the line, wherever he stands in it, and the others go on.
TEST(Turns, WhoIsNotWantedLeavesTheLine) {
  Turns turns;
  std::vector<int> order;
  std::vector<std::thread> threads;
  std::atomic<bool> wanted[6] = {true, true, true, true, true, true};
  {
    const Turns::Turn held(turns);
    for (int i = 0; i < 6; ++i) {
      threads.emplace_back([&, i] {  // three that are due, and three that are not
        const Turns::Turn turn(turns, i % 2 == 0 ? 1000 + i : kNeverDue, [&, i] { return wanted[i].load(); });
        EXPECT_EQ(turn.is_mine(), i >= 2 && i < 4);
        if (turn.is_mine()) order.push_back(i);
      });
      while (turns.asking() < static_cast<uint64_t>(i) + 2) std::this_thread::yield();
    }
    for (const int i : {0, 5, 4, 1}) {  // the first and the last of each line
      wanted[i] = false;
      threads[static_cast<size_t>(i)].join();
    }
    EXPECT_EQ(turns.waiting(), 2u);
  }
  for (std::thread& thread : threads)
    if (thread.joinable()) thread.join();
  EXPECT_EQ(order, (std::vector<int>{2, 3}));
  EXPECT_EQ(turns.asking(), 0u);
}

// Nor is it his once it has come, though he has not been asked before; and it is no step.
TEST(Turns, WhoIsNotWantedWhenItComesHasNone) {
  Turns turns;
  int asked = 0;
  const Turns::Turn turn(turns, 1000, [&] {
    ++asked;
    EXPECT_EQ(turns.asking(), 1u);
    return false;
  });
  EXPECT_FALSE(turn.is_mine());
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(turns.asking(), 0u);
  EXPECT_EQ(turns.steps().count(), 0u);
  const Turns::Turn next(turns, 1000, [] { return true; });
  EXPECT_TRUE(next.is_mine());
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
