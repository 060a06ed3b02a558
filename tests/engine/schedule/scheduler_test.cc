#include "engine/schedule/scheduler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "engine/schedule/compute.h"

namespace syrinx {
namespace {

constexpr int64_t kMs = 1'000'000;

// By a clock that stands still unless a test moves it.
class SchedulerTest : public ::testing::Test {
 protected:
  using Turn = StepQueue::Turn;

  // Starts a thread and returns when it waits for the turn.
  template <class Body>
  void ask(Body body) {
    const size_t waiting = scheduler_.waiting();
    threads_.emplace_back(std::move(body));
    while (scheduler_.waiting() == waiting) std::this_thread::yield();
  }
  void join() {
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
  }

  ManualClock clock_;
  Scheduler scheduler_{clock_};
  StepQueue queue_{scheduler_};
  std::vector<int> order_;
  std::vector<std::thread> threads_;
};

TEST_F(SchedulerTest, TurnsGoInTheOrderOfAsking) {
  {
    const Turn held(queue_);
    for (int i = 0; i < 4; ++i)
      ask([&, i] {
        const Turn turn(queue_);
        order_.push_back(i);
      });
  }
  join();
  EXPECT_EQ(order_, (std::vector<int>{0, 1, 2, 3}));
}

// Across the queues of one scheduler.
TEST_F(SchedulerTest, EarliestDueGoesFirst) {
  StepQueue other(scheduler_);
  const std::vector<int64_t> due_ns = {500, kNeverDue, 300, 400, 300, kDueAtOnce, -7};
  {
    const Turn held(queue_, 100);
    for (size_t i = 0; i < due_ns.size(); ++i)
      ask([&, i] {
        const Turn turn(i % 2 == 0 ? queue_ : other, due_ns[i]);
        order_.push_back(static_cast<int>(i));
      });
    EXPECT_EQ(scheduler_.sooner(kNeverDue), -7);
    EXPECT_EQ(queue_.waiting(), 4u);
    EXPECT_EQ(other.waiting(), 3u);
    EXPECT_EQ(other.asking(), 3u);
  }
  join();
  EXPECT_EQ(order_, (std::vector<int>{6, 5, 2, 4, 3, 0, 1}));
  EXPECT_EQ(queue_.asking() + other.asking() + scheduler_.waiting(), 0u);
}

TEST_F(SchedulerTest, BatchWorkKeepsItsShare) {
  constexpr int kBefore = 16;  // steps of 8 ms that earn one
  {
    const Turn held(queue_);
    for (int i = 0; i < kBefore + 3; ++i)
      ask([&, i] {
        const Turn turn(queue_, i == 0 ? kNeverDue : 1000 + i);
        order_.push_back(i);
        clock_.advance_ns(DueQueue::kStepNs);
      });
  }
  join();
  std::vector<int> expected;
  for (int i = 1; i <= kBefore; ++i) expected.push_back(i);
  expected.insert(expected.end(), {0, kBefore + 1, kBefore + 2});
  EXPECT_EQ(order_, expected);
}

TEST_F(SchedulerTest, ReturningCallerQueuesBehindWaiters) {
  std::atomic<int> inside{0};
  int last = -1;        // whose turn was before
  bool others = false;  // waited when it ended
  for (int i = 0; i < 4; ++i)
    threads_.emplace_back([&, i] {
      for (int n = 0; n < 200; ++n) {
        const Turn turn(queue_);
        EXPECT_EQ(inside.fetch_add(1), 0);
        EXPECT_FALSE(last == i && others) << "came again before one that waited";
        last = i;
        others = queue_.asking() > 1;
        inside.fetch_sub(1);
      }
    });
  join();
}

TEST_F(SchedulerTest, CancelledWaiterLeavesTheLine) {
  std::atomic<bool> wanted[6] = {true, true, true, true, true, true};
  {
    const Turn held(queue_);
    for (int i = 0; i < 6; ++i) {
      ask([&, i] {  // three that are due, and three that are not
        const Turn turn(queue_, i % 2 == 0 ? 1000 + i : kNeverDue, [&, i] { return wanted[i].load(); });
        EXPECT_EQ(turn.is_mine(), i >= 2 && i < 4);
        if (turn.is_mine()) order_.push_back(i);
      });
    }
    for (const int i : {0, 5, 4, 1}) {  // the first and the last of each line
      wanted[i] = false;
      threads_[static_cast<size_t>(i)].join();
    }
    EXPECT_EQ(queue_.waiting(), 2u);
  }
  join();
  EXPECT_EQ(order_, (std::vector<int>{2, 3}));
  EXPECT_EQ(queue_.asking(), 0u);
}

// Though it has not been asked before; and it is no step.
TEST_F(SchedulerTest, CancelledTurnIsHandedOver) {
  int asked = 0;
  const Turn turn(queue_, 1000, [&] {
    ++asked;
    EXPECT_EQ(queue_.asking(), 1u);
    return false;
  });
  EXPECT_FALSE(turn.is_mine());
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(queue_.asking(), 0u);
  EXPECT_EQ(queue_.steps().count(), 0u);
  const Turn next(queue_, 1000, [] { return true; });
  EXPECT_TRUE(next.is_mine());
}

// From its beginning to its end; batch work is none.
TEST_F(SchedulerTest, DueWorkCountsAsSteps) {
  clock_.advance_ns(1000 * kMs);
  const auto take = [&](int64_t due_ns) {
    const Turn turn(queue_, due_ns);
    clock_.advance_ns(7 * kMs);
  };
  take(kNeverDue);
  EXPECT_EQ(queue_.steps().count(), 0u);
  take(clock_.now_ns() + 7 * kMs);
  EXPECT_EQ(queue_.steps().late, 0u);
  take(clock_.now_ns() + 6 * kMs);
  EXPECT_EQ(queue_.steps().late, 1u);
  take(clock_.now_ns() - 1);  // it waited too long
  EXPECT_EQ(queue_.steps().late, 2u);
  take(kDueAtOnce);
  {
    Turn turn(queue_, clock_.now_ns() - 1);
    turn.set_deadline(kNeverDue);
    clock_.advance_ns(kMs);
  }
  {
    Turn turn(queue_, clock_.now_ns() - 1);
    turn.make_nothing();
  }
  EXPECT_EQ(queue_.steps().late, 2u);
  EXPECT_EQ(queue_.steps().count(), 5u);
  EXPECT_EQ(queue_.steps().buckets[3], 4u);  // up to 10 ms
  EXPECT_EQ(queue_.steps().took_ns, 29 * kMs);
  EXPECT_EQ(queue_.longest_step_ns(), 7 * kMs);
}

// The time of others is not the step's, which is late once, at its end.
TEST_F(SchedulerTest, PartsAreOneStep) {
  clock_.advance_ns(kMs);
  {
    Turn held(queue_, 500);
    ask([&] {
      const Turn turn(queue_, 400);
      clock_.advance_ns(100 * kMs);
    });
    EXPECT_EQ(queue_.waiting(), 1u);
    clock_.advance_ns(kMs);
    held.give_way();
    join();
    EXPECT_EQ(held.waited_ns(), 100 * kMs);
    EXPECT_EQ(queue_.steps().count(), 1u);
    EXPECT_EQ(queue_.steps().late, 1u);
    clock_.advance_ns(2 * kMs);
    held.give_way();  // to none
    EXPECT_EQ(queue_.steps().count(), 1u);
    clock_.advance_ns(kMs);
  }
  EXPECT_EQ(queue_.waiting(), 0u);
  EXPECT_EQ(queue_.steps().count(), 2u);
  EXPECT_EQ(queue_.steps().buckets[2], 1u) << "4 ms in all";
  EXPECT_EQ(queue_.steps().late, 2u);
  EXPECT_EQ(queue_.steps().took_ns, 104 * kMs);
  EXPECT_EQ(queue_.longest_step_ns(), 100 * kMs);
}

TEST_F(SchedulerTest, OpenStreamsAreCounted) {
  EXPECT_EQ(scheduler_.open(), 0u);
  {
    Scheduler::Open first(scheduler_);
    const Scheduler::Open second(scheduler_), moved(std::move(first));
    EXPECT_EQ(scheduler_.open(), 2u);
  }
  EXPECT_EQ(scheduler_.open(), 0u);
}

// Live work that gives way is not behind batch work, batch work is behind live work and behind batch work that waits.
TEST_F(SchedulerTest, GivingWayKeepsTheOrder) {
  {
    Turn live(queue_, 50 * kMs);
    ask([&] {
      const Turn batch(queue_);
      order_.push_back(1);
    });
    live.give_way();
    order_.push_back(0);
  }
  join();
  {
    Turn batch(queue_);
    for (const int64_t due_ns : {kNeverDue, 50 * kMs})
      ask([&, due_ns] {
        const Turn turn(queue_, due_ns);
        order_.push_back(due_ns == kNeverDue ? 3 : 2);
      });
    batch.give_way();
    order_.push_back(4);
  }
  join();
  EXPECT_EQ(order_, (std::vector<int>{0, 1, 2, 3, 4}));
}

// Long live work and a stream that is ahead take turns, by slices.
TEST_F(SchedulerTest, LongWorkGivesWayBySlices) {
  const int64_t far_ns = 1000 * kMs;
  {
    Turn work(queue_, far_ns / 2);
    clock_.advance_ns(1);
    ask([&] {
      const Turn ahead(queue_, far_ns);
      order_.push_back(-1);
    });
    for (int part = 0; part < 6; ++part) {
      order_.push_back(part);
      clock_.advance_ns(DueQueue::kStepNs);
      work.give_way();
    }
  }
  join();
  EXPECT_EQ(order_, (std::vector<int>{0, 1, 2, 3, -1, 4, 5}));
}

// As urgent as the one who waits for its end, say.
TEST_F(SchedulerTest, GivingWayMayHasten) {
  {
    Turn batch(queue_);
    ask([&] {
      const Turn live(queue_, 50 * kMs);
      order_.push_back(1);
    });
    batch.give_way(40 * kMs);
    order_.push_back(0);
  }
  join();
  EXPECT_EQ(order_, (std::vector<int>{0, 1}));
}

// A recording holds the line and waits for the team behind live work; a stream that then waits for the line would wait
// behind all of that.
TEST_F(SchedulerTest, HolderInheritsItsLinesUrgency) {
  for (const bool asks_first : {false, true}) {
    SCOPED_TRACE(asks_first);
    order_.clear();
    Scheduler line(clock_);
    StepQueue lines(line);
    const auto urgent = [&] {
      const Turn own(lines, 10 * kMs);
      const Turn turn(queue_, 10 * kMs);
      order_.push_back(1);
    };
    {
      const Turn held(queue_);
      std::atomic<bool> has_line{false}, goes_on{!asks_first};
      threads_.emplace_back([&] {
        const Turn own(lines);
        has_line = true;
        while (!goes_on) std::this_thread::yield();
        Turn turn(queue_, kNeverDue, {}, &line);
        turn.give_way();
        order_.push_back(0);
      });
      while (!has_line) std::this_thread::yield();
      const auto ask_live = [&] {
        ask([&] {
          const Turn live(queue_, 50 * kMs);
          order_.push_back(2);
        });
      };
      if (asks_first) threads_.emplace_back(urgent);
      while (asks_first && line.waiting() == 0) std::this_thread::yield();
      goes_on = true;
      while (queue_.waiting() == 0) std::this_thread::yield();
      ask_live();
      if (!asks_first) threads_.emplace_back(urgent);
      while (scheduler_.sooner(kNeverDue) != 10 * kMs) std::this_thread::yield();  // until the holder has inherited it
    }
    join();
    EXPECT_EQ(order_, (std::vector<int>{0, 2, 1}));  // the line comes free behind the holder's turn of the team
  }
}

// Time in which nothing else waited counts for no share.
TEST_F(SchedulerTest, TimeWithoutWaitersIsNotCharged) {
  {
    Turn batch(queue_);
    for (int i = 0; i < 100; ++i) {
      clock_.advance_ns(DueQueue::kStepNs);
      batch.give_way();
    }
    ask([&] {
      const Turn waited(queue_, clock_.now_ns() - 1);
      order_.push_back(0);
    });
    ask([&] {
      const Turn live(queue_, clock_.now_ns() + kMs);
      order_.push_back(1);
    });
    clock_.advance_ns(kMs);
  }
  join();
  EXPECT_EQ(order_, (std::vector<int>{1, 0})) << "a millisecond earns no step";
  EXPECT_EQ(queue_.steps().other_ns, 801 * kMs);
  EXPECT_EQ(queue_.longest_step_ns(), 8 * kMs);
}

TEST_F(SchedulerTest, OthersRunOutsideATurn) {
  Turn turn(queue_);
  const int answer = turn.outside([&] {
    const Turn other(queue_, 10);
    order_.push_back(1);
    return 7;
  });
  EXPECT_EQ(answer, 7);
  EXPECT_EQ(queue_.asking(), 1u);
  EXPECT_EQ(order_, (std::vector<int>{1}));
}

TEST_F(SchedulerTest, PlacesAreTakenForOthers) {
  StepQueue::Place first, second;
  queue_.join(first, 100);
  queue_.join(second, 300);
  EXPECT_TRUE(first.is_taken() && second.is_taken());
  {
    const Turn turn(queue_, first);  // nothing ran
    ask([&] {
      const Turn other(queue_, 200);
      order_.push_back(1);
    });
    queue_.hasten(second, 400);  // which is no earlier
    queue_.hasten(second, 150);
    ask([&] {
      const Turn batch(queue_);
      order_.push_back(2);
    });
  }
  {
    const Turn turn(queue_, second);
    order_.push_back(0);
  }
  join();
  EXPECT_FALSE(second.is_taken());
  EXPECT_EQ(order_, (std::vector<int>{0, 1, 2}));
}

TEST(Compute, PartsShareOneTeam) {
  Compute compute;
  ThreadTeam one = compute.team(1), two = compute.team(2);
  EXPECT_EQ(one.size(), 1);
  EXPECT_EQ(two.size(), 2);
  EXPECT_EQ(compute.threads(), 2);
  ThreadTeam three = compute.team(3), again = compute.team(2);
  EXPECT_EQ(compute.threads(), 3);
  StepQueue queue(compute.scheduler());
  std::set<std::thread::id> seen;
  for (ThreadTeam* const team : {&one, &two, &three, &again}) {
    const StepQueue::Turn turn(queue);
    std::vector<std::thread::id> ids(static_cast<size_t>(team->size()));
    team->run([&](int member) {
      ids[static_cast<size_t>(member)] = std::this_thread::get_id();
      team->barrier();
    });
    EXPECT_EQ(ids[0], std::this_thread::get_id());
    seen.insert(ids.begin(), ids.end());
  }
  EXPECT_EQ(seen.size(), 3u);
}

// While others compute.
TEST(Compute, TeamsGrowBetweenSteps) {
  Compute compute;
  StepQueue queue(compute.scheduler());
  ThreadTeam team = compute.team(2);
  std::atomic<bool> stop{false};
  int64_t sum = 0, steps = 0;
  std::thread computing([&] {
    do {
      const StepQueue::Turn turn(queue);
      int64_t values[2] = {};
      team.run([&](int member) { values[member] = member + 1; });
      sum += values[0] + values[1];
      ++steps;
    } while (!stop);
  });
  for (int threads = 3; threads <= 6; ++threads) EXPECT_EQ(compute.team(threads).size(), threads);
  stop = true;
  computing.join();
  EXPECT_EQ(sum, 3 * steps);
}

TEST(Compute, TheProcessHasOne) {
  const std::shared_ptr<Compute> first = Compute::shared();
  EXPECT_EQ(Compute::shared(), first);
}

}  // namespace
}  // namespace syrinx
