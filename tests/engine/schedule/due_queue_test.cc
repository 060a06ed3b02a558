// The order of work by times that the test makes up.
#include "engine/schedule/due_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <vector>

namespace syrinx {
namespace {

constexpr int64_t kMs = 1'000'000;

// Waiters by their number, in the order of asking.
class Line {
 public:
  void ask(int64_t due_ns, int64_t asked_ns = 0) {
    waiters_.emplace_back();
    queue.put(waiters_.back(), due_ns, work_of(due_ns, asked_ns), asked_ns);
  }
  size_t take(int64_t now_ns = 0) { return index(queue.take(now_ns)); }
  void leave(size_t n) { queue.remove(waiters_[n]); }
  std::vector<size_t> take_all(int64_t now_ns = 0) {
    std::vector<size_t> order;
    while (!queue.empty()) order.push_back(take(now_ns));
    return order;
  }
  size_t index(const DueQueue::Waiter& waiter) const {
    return static_cast<size_t>(std::ranges::find_if(waiters_, [&](const auto& each) { return &each == &waiter; }) -
                               waiters_.begin());
  }

  DueQueue queue;

 private:
  std::deque<DueQueue::Waiter> waiters_;
};

TEST(WorkOf, DueTimeNamesTheClass) {
  EXPECT_EQ(work_of(kNeverDue, 5), Work::kBatch);
  EXPECT_EQ(work_of(kDueAtOnce, 5), Work::kLive);
  EXPECT_EQ(work_of(4, 5), Work::kWaitedFor);
  EXPECT_EQ(work_of(5, 5), Work::kWaitedFor);
  EXPECT_EQ(work_of(6, 5), Work::kLive);
}

TEST(DueQueue, LiveWorkGoesByDueTime) {
  Line line;
  for (const int64_t due_ns : {500, 300, 400, 300, 0, -7}) line.ask(due_ns, -100);
  EXPECT_EQ(line.take_all(), (std::vector<size_t>{5, 4, 1, 3, 2, 0}));
  EXPECT_EQ(line.queue.first_due_ns(-100), kNeverDue);
}

TEST(DueQueue, LiveWorkThatWaitedLongGoesFirst) {
  const int64_t now_ns = 1000 * kMs, far = now_ns + 2 * DueQueue::kSoonNs;
  for (const int64_t waited_ns : {DueQueue::kStandNs - 1, DueQueue::kStandNs}) {
    Line line;
    line.ask(now_ns - 1, now_ns);
    line.ask(far, now_ns - waited_ns);
    EXPECT_EQ(line.take(now_ns), waited_ns < DueQueue::kStandNs ? 0u : 1u);
  }
}

// A stream with time to spare beside live work that is long: a window, in jobs that each are due sooner, or at once.
TEST(DueQueue, StandingStreamPassesUrgentWork) {
  const int64_t now_ns = 1000 * kMs, far = now_ns + 2 * DueQueue::kSoonNs, soon = now_ns + DueQueue::kSoonNs - 1;
  for (const int64_t window_ns : {kDueAtOnce, soon}) {
    for (const int64_t waited_ns : {DueQueue::kStandNs - 1, DueQueue::kStandNs}) {
      Line line;
      line.ask(window_ns, now_ns);
      line.ask(far, now_ns - waited_ns);
      EXPECT_EQ(line.take(now_ns), waited_ns < DueQueue::kStandNs ? 0u : 1u) << window_ns;
    }
  }
}

TEST(DueQueue, CriticalWorkPassesStandingStream) {
  const int64_t now_ns = 1000 * kMs, far = now_ns + 2 * DueQueue::kSoonNs;
  Line line;
  line.ask(far, now_ns - DueQueue::kStandNs);
  line.ask(now_ns + DueQueue::kStandNs, now_ns - 1);
  EXPECT_EQ(line.take(now_ns), 1u);
}

TEST(DueQueue, LongWaitOfUrgentWorkIsNoStanding) {
  const int64_t now_ns = 1000 * kMs, far = now_ns + 2 * DueQueue::kSoonNs;
  Line line;
  line.ask(kDueAtOnce, now_ns - 100 * kMs);
  line.ask(far, now_ns - DueQueue::kStandNs);
  line.ask(far, now_ns - DueQueue::kStandNs - 1);
  EXPECT_EQ(line.take_all(now_ns), (std::vector<size_t>{2, 1, 0}));
}

// Until one of them is due soon.
TEST(DueQueue, LiveWorkWithTimeGoesByAsking) {
  Line line;
  const int64_t now_ns = 1000 * kMs, far = now_ns + 2 * DueQueue::kSoonNs;
  line.ask(far + 5000 * kMs, now_ns - 3);
  line.ask(far, now_ns - 2);
  line.ask(far + 700 * kMs, now_ns - 4);  // kept its place
  EXPECT_EQ(line.queue.first_due_ns(now_ns), far);
  EXPECT_EQ(line.take(now_ns), 2u);
  EXPECT_EQ(line.take(far - 1), 1u);
  EXPECT_EQ(line.take(far - 1), 0u);
}

TEST(DueQueue, BatchWorkGoesByAsking) {
  Line line;
  for (int i = 0; i < 4; ++i) line.ask(kNeverDue);
  EXPECT_EQ(line.take_all(), (std::vector<size_t>{0, 1, 2, 3}));
}

// Live work that is due soon, then waited-for work, then live work that has time, then batch work.
TEST(DueQueue, ClassesGoInOrder) {
  Line line;
  const int64_t now_ns = 1000 * kMs;
  line.ask(kNeverDue, now_ns);
  line.ask(now_ns + DueQueue::kSoonNs, now_ns);
  line.ask(now_ns - kMs, now_ns);
  line.ask(now_ns - 2 * kMs, now_ns);
  line.ask(now_ns + DueQueue::kSoonNs - 1, now_ns);
  EXPECT_EQ(line.queue.first_due_ns(now_ns), now_ns + DueQueue::kSoonNs - 1);
  EXPECT_EQ(line.take_all(now_ns), (std::vector<size_t>{4, 3, 2, 1, 0}));
}

// A due time that has passed does not make live work wait behind that of others.
TEST(DueQueue, DueTimesThatCanBeMetGoFirst) {
  const int64_t now_ns = 1000 * kMs, soon = now_ns + 20 * kMs, late = now_ns - 500 * kMs, far = now_ns + 2000 * kMs;
  for (const auto& [first, second] : {std::pair(soon, late), std::pair(late, far), std::pair(far, kNeverDue),
                                      std::pair(late, now_ns - kMs), std::pair(soon, soon + 1)}) {
    EXPECT_EQ(DueQueue::sooner(first, second, now_ns), first);
    EXPECT_EQ(DueQueue::sooner(second, first, now_ns), first);
  }
}

// Live work that became late while it waited is still live.
TEST(DueQueue, WaitingLiveWorkStaysLive) {
  Line line;
  line.ask(kMs, 0);
  line.ask(2 * kMs, 3 * kMs);
  EXPECT_EQ(line.take_all(5 * kMs), (std::vector<size_t>{0, 1}));
}

TEST(DueQueue, LeaversAreNotServed) {
  for (const size_t gone : {0, 1, 2}) {
    Line line;
    for (const int64_t due_ns : {10, 20, 30}) line.ask(due_ns);
    line.leave(gone);
    EXPECT_EQ(line.queue.waiting(), 2u);
    std::vector<size_t> expected = {0, 1, 2};
    std::erase(expected, gone);
    EXPECT_EQ(line.take_all(), expected);
  }
}

// Streams that are ahead of their listeners.
TEST(DueQueue, BatchWorkTakesHalfOfSpareTime) {
  Line line;
  line.ask(kNeverDue);
  for (int i = 0; i < 3; ++i) line.ask(DueQueue::kSoonNs + i);
  EXPECT_EQ(line.take(), 1u);
  line.queue.note(Work::kLive, DueQueue::kStepNs - 1);
  EXPECT_EQ(line.take(), 2u);
  line.queue.note(Work::kLive, 1);
  EXPECT_EQ(line.take(), 0u);
  EXPECT_EQ(line.take(), 3u);
}

// All three classes ask again and again; each step's length is drawn.
struct Contention {
  std::array<int64_t, DueQueue::kClasses> took_ns{};
  int64_t longest_wait_ns = 0;  // of batch work
};

// `batch_ns`: the length of each step of batch work; 0: as the others'.
Contention contend(std::array<bool, DueQueue::kClasses> asks, int64_t shortest_ns, int64_t longest_ns,
                   int64_t batch_ns = 0) {
  std::mt19937_64 random(7);
  std::uniform_int_distribution<int64_t> length(shortest_ns, longest_ns);
  DueQueue queue;
  std::array<DueQueue::Waiter, DueQueue::kClasses> waiters;
  Contention result;
  int64_t now_ns = 1'000'000 * kMs, batch_since_ns = now_ns;
  const auto ask = [&](size_t i) {
    const std::array<int64_t, DueQueue::kClasses> due_ns = {now_ns + 20 * kMs, now_ns - kMs, kNeverDue};
    queue.put(waiters[i], due_ns[i], static_cast<Work>(i));
  };
  for (size_t i = 0; i < asks.size(); ++i)
    if (asks[i]) ask(i);
  for (int step = 0; step < 20000; ++step) {
    const DueQueue::Waiter& next = queue.take(now_ns);
    const auto i = static_cast<size_t>(next.work);
    if (next.work == Work::kBatch) result.longest_wait_ns = std::max(result.longest_wait_ns, now_ns - batch_since_ns);
    const int64_t took_ns = next.work == Work::kBatch && batch_ns > 0 ? batch_ns : length(random);
    now_ns += took_ns;
    result.took_ns[i] += took_ns;
    queue.note(next.work, took_ns);
    if (next.work == Work::kBatch) batch_since_ns = now_ns;
    ask(i);
  }
  return result;
}

TEST(DueQueue, EachClassKeepsItsShare) {
  for (const auto& [shortest_ns, longest_ns] : {std::pair{kMs, 8 * kMs}, {8 * kMs, 8 * kMs}, {20 * kMs, 60 * kMs}}) {
    const Contention all = contend({true, true, true}, shortest_ns, longest_ns);
    const double live = static_cast<double>(all.took_ns[0]), waited_for = static_cast<double>(all.took_ns[1]),
                 batch = static_cast<double>(all.took_ns[2]);
    // Earned by the time of the others: s of it is s / (1 + s) of all.
    EXPECT_NEAR(batch / (live + waited_for), 1.0 / 16, 0.005) << longest_ns;
    EXPECT_NEAR(waited_for / (live + batch), 1.0 / 4, 0.02) << longest_ns;
    EXPECT_GT(live / (live + waited_for + batch), 0.7) << longest_ns;
  }
}

TEST(DueQueue, BatchWaitIsBounded) {
  const Contention two = contend({true, false, true}, 2 * kMs, 8 * kMs);
  // The time that earns a step of 8 ms, a step that was taken before it was paid, and the step that runs.
  EXPECT_LE(two.longest_wait_ns, (2 * DueQueue::kStepNs) * 16 + 8 * kMs);
  const Contention waited_for = contend({false, true, true}, 2 * kMs, 8 * kMs);
  EXPECT_NEAR(static_cast<double>(waited_for.took_ns[2]) / static_cast<double>(waited_for.took_ns[1]), 1.0 / 16, 0.005);
}

// One step earns no other class more than a part of a step, however long it takes.
TEST(DueQueue, LongStepEarnsLittle) {
  Line line;
  line.ask(kNeverDue);
  line.ask(10);
  line.queue.note(Work::kLive, 3600'000 * kMs);
  EXPECT_EQ(line.take(), 1u);
  EXPECT_EQ(line.take(), 0u);
}

// However long a step is, it is paid for before the next one of its class is.
TEST(DueQueue, LongStepIsOwedWhole) {
  for (const int64_t long_ns : {80 * kMs, 400 * kMs}) {
    const Contention two = contend({true, false, true}, 8 * kMs, 8 * kMs, long_ns);
    EXPECT_NEAR(static_cast<double>(two.took_ns[2]) / static_cast<double>(two.took_ns[0]), 1.0 / 16, 0.005) << long_ns;
  }
}

// A stream that is ahead, beside batch work that its round has earned two steps for.
TEST(DueQueue, StandingStreamPassesSavedShares) {
  const int64_t now_ns = 1000 * kMs, far = now_ns + 1000 * kMs;
  for (const int64_t waited_ns : {DueQueue::kLongStandNs - 1, DueQueue::kLongStandNs}) {
    Line line;
    for (int i = 0; i < 3; ++i) line.ask(kNeverDue, now_ns);
    line.ask(far, now_ns);
    EXPECT_EQ(line.take(now_ns), 3u);
    line.queue.note(Work::kLive, 2 * DueQueue::kStepNs);
    line.ask(far, now_ns - waited_ns);
    EXPECT_EQ(line.take(now_ns), 0u);
    line.queue.note(Work::kBatch, DueQueue::kStepNs);
    EXPECT_EQ(line.take(now_ns), waited_ns < DueQueue::kLongStandNs ? 1u : 4u);
  }
}

// A class earns nothing while it does not wait.
TEST(DueQueue, NothingIsEarnedWithoutWaiting) {
  Line line;
  for (int i = 0; i < 100; ++i) line.queue.note(Work::kLive, 8 * kMs);
  line.ask(kNeverDue);
  line.ask(10);
  EXPECT_EQ(line.take_all(), (std::vector<size_t>{1, 0}));
}

}  // namespace
}  // namespace syrinx
