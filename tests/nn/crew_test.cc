// A task of several stages, each of which adds to what the one before it left, shared by whoever works at it.
#include "nn/crew.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

namespace syrinx::nn {
namespace {

constexpr size_t kStages = 40, kItems = 101;

struct Task {
  explicit Task(ThreadTeam& team) : crew(team) {}

  // Item i of stage s becomes the sum of its neighbours in stage s - 1: wrong at once if a stage begins too early.
  // `before`: what the first of a stage does before it.
  void work(
      Crew::Seat& seat, const std::function<void()>& before = [] {}) {
    for (size_t s = 0; s < kStages; ++s) {
      seat.stage([&](const Part& part) {
        if (part.rank == 0) before();
        if (part.rank == 0) most = std::max(most, part.size);
        const std::vector<uint64_t>& from = items[s % 2];
        std::vector<uint64_t>& to = items[(s + 1) % 2];
        const Range own = part.split(kItems);
        for (size_t i = own.begin; i < own.end; ++i)
          to[i] = from[(i + kItems - 1) % kItems] + 3 * from[i] + from[(i + 1) % kItems];
      });
      seat.together([&](const Part& part) {
        if (part.rank == 0) ++seen;
      });
    }
  }
  void clear() {
    for (auto& values : items) values.resize(kItems);
    std::iota(items[0].begin(), items[0].end(), uint64_t{1});
    most = 0;
    seen = 0;
  }

  Crew crew;
  std::vector<uint64_t> items[2];
  int most = 0;
  size_t seen = 0;
};

std::vector<uint64_t> expected() {
  ThreadTeam team(1);
  Task task(team);
  task.clear();
  Crew::Seat seat = task.crew.everyone(0);
  task.work(seat);
  return task.items[0];
}

TEST(Crew, EveryoneFromTheFirstStage) {
  for (const int threads : {1, 2, 3}) {
    ThreadTeam team(threads);
    Task task(team);
    for (int round = 0; round < 20; ++round) {
      task.clear();
      team.run([&](int member) {
        Crew::Seat seat = task.crew.everyone(member);
        task.work(seat);
      });
      ASSERT_EQ(task.items[0], expected()) << threads;
      EXPECT_EQ(task.most, threads);
      EXPECT_EQ(task.seen, kStages);
    }
  }
}

// Two tasks side by side; the slow one is joined by the member that has finished the other.
TEST(Crew, WhoHasFinishedJoinsTheOther) {
  ThreadTeam team(2);
  Task tasks[2] = {Task(team), Task(team)};
  const std::vector<uint64_t> want = expected();
  for (const int slow : {0, 1}) {
    for (int round = 0; round < 20; ++round) {
      for (Task& task : tasks) {
        task.clear();
        task.crew.reset();
      }
      // The slow task has begun when the other is done, however the two threads are scheduled, and its stages take
      // longer and longer until somebody has joined.
      std::atomic<bool> other_done = false;
      const auto before = [&](int task) {
        return [&, task, pause = std::chrono::microseconds(300)]() mutable {
          if (task != slow || tasks[task].most == 2) return;
          while (!other_done) std::this_thread::yield();
          std::this_thread::sleep_for(pause);
          pause = pause * 5 / 4;
        };
      };
      team.run([&](int member) {
        Task &own = tasks[member], &other = tasks[1 - member];
        Crew::Seat seat = own.crew.first(member);
        own.work(seat, before(member));
        own.crew.leave(seat);
        if (member != slow) other_done = true;
        Crew::Seat second = other.crew.join(member);
        other.work(second, before(1 - member));
      });
      for (const Task& task : tasks) {
        ASSERT_EQ(task.items[0], want) << "slow " << slow;
        EXPECT_EQ(task.seen, kStages);
      }
      EXPECT_EQ(tasks[slow].most, 2) << "nobody joined 40 stages, the last of seconds";
    }
  }
}

}  // namespace
}  // namespace syrinx::nn
