// The order in which work that waits for one team of threads is served.  Pure: no thread, no lock, no clock of its own;
// scheduler.h puts threads around it.
//
// Three classes of work:
//   kLive        audio that is heard as it is made, or transcribed as it is spoken: its due time can still be met.
//                Served first, by due time where any is due within kSoonNs; else in the order of asking, so that
//                streams that are ahead of their listeners and long live work take turns.  A stream that has waited
//                for kStandNs goes before all that is not due within kStandNs: else its frames would stop for as long
//                as a window of a recogniser takes, whose jobs are all due at once or soon.
//   kWaitedFor   an answer that a person waits for, or live work whose due time has passed: it is late whatever
//                happens, so it goes behind live work that is due within kSoonNs, and before live work that has more
//                time.
//   kBatch       nobody waits for it: served while nothing else waits.
//
// Shares: while work of a class waits and other work runs, the class earns its share of that time; as soon as it has
// earned kStepNs, one of its steps goes before all others, and the time that it takes is subtracted.  So waited-for
// work keeps a quarter of the team, batch work a sixteenth, and live work the rest, whatever the others ask for.  Live
// work that has more time than kSoonNs, a stream that is ahead of its listener, shares the team with batch work by
// halves.  Before live work that has waited for kLongStandNs, only one earned step of each class goes: so a
// stream's frames stop for little longer than that, a step of each class and a round.
//
// Other work of one class and due time is served in the order of asking.  Nothing is allocated: waiters are linked in
// place.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/due.h"

namespace syrinx {

enum class Work : uint8_t { kLive, kWaitedFor, kBatch };

// The class of work that is asked for at `asked_ns` (base/due.h).
constexpr Work work_of(int64_t due_ns, int64_t asked_ns) {
  if (due_ns == kNeverDue) return Work::kBatch;
  return due_ns > kDueAtOnce && due_ns <= asked_ns ? Work::kWaitedFor : Work::kLive;
}

class DueQueue {
 public:
  static constexpr size_t kClasses = 3;
  // Work is cut into steps of about this length.
  static constexpr int64_t kStepNs = 8'000'000;
  // Live work that is due within this time goes before waited-for work.
  static constexpr int64_t kSoonNs = 100'000'000;
  // Long live work keeps its place in the order of asking for so much work.
  static constexpr int64_t kSliceNs = 4 * kStepNs;
  // Live work with more time goes before other work once it has waited so long: a stream that is ahead is not stopped
  // until its listener has caught up.
  static constexpr int64_t kStandNs = 24'000'000;
  // And before a second earned step of a class: what is saved up does not stop a stream at once.
  static constexpr int64_t kLongStandNs = 32'000'000;
  // One step earns the others at most the share of this time, however long it takes.
  static constexpr int64_t kMostCountedNs = 100'000'000;
  // A class earns 1 / kShares of the time that other work takes; 0: it needs no share, as it goes first.
  static constexpr std::array<int64_t, kClasses> kShares = {0, 4, 16};

  // Owned by the one who waits; linked while it is in the queue.
  struct Waiter {
    int64_t due_ns = kNeverDue, asked_ns = 0;
    Work work = Work::kBatch;
    Waiter* next = nullptr;
  };

  void put(Waiter& waiter, int64_t due_ns, Work work, int64_t asked_ns = 0) {
    waiter.due_ns = due_ns;
    waiter.asked_ns = asked_ns;
    waiter.work = work;
    Waiter** at = &first(work);
    while (*at != nullptr && !is_before(waiter, **at)) at = &(*at)->next;
    waiter.next = *at;
    *at = &waiter;
    ++waiting_;
  }
  // The waiter is in the queue.
  void remove(Waiter& waiter) {
    Waiter** at = &first(waiter.work);
    while (*at != &waiter) at = &(*at)->next;
    *at = waiter.next;
    --waiting_;
  }
  // The next one, which leaves the queue; there is one.
  Waiter& take(int64_t now_ns) {
    SYRINX_CHECK(waiting_ > 0, "nothing waits");
    const Work work = choose(now_ns);
    Waiter& taken = work == Work::kLive ? next_live(now_ns) : *first(work);
    had_time_ = work == Work::kLive && taken.due_ns >= now_ns + kSoonNs;
    remove(taken);
    return taken;
  }
  // A step of that work has ended.  Called before the next one is taken.
  void note(Work work, int64_t took_ns) {
    for (size_t i = 0; i < kClasses; ++i) {
      if (kShares[i] == 0) continue;
      if (static_cast<Work>(i) == work) {
        if (is_paid_) earned_ns_[i] = std::max(earned_ns_[i] - took_ns, -kMostOwedNs);
        was_paid_[i] = is_paid_;
      } else if (firsts_[i] != nullptr) {
        earned_ns_[i] =
            std::min(earned_ns_[i] + std::min(took_ns, kMostCountedNs) / (had_time_ ? 1 : kShares[i]), kMostEarnedNs);
      }
    }
    if (work == Work::kLive) was_paid_.fill(false);
    is_paid_ = had_time_ = false;
  }

  size_t waiting() const { return waiting_; }
  bool empty() const { return waiting_ == 0; }
  // The due time of the most urgent waiter at this moment; kNeverDue where there is none.
  int64_t first_due_ns(int64_t now_ns) const {
    const Waiter* best = soonest();
    for (const Waiter* const first : firsts_)
      if (first != nullptr &&
          (best == nullptr || goes_before(first->work, first->due_ns, best->work, best->due_ns, now_ns)))
        best = first;
    return best != nullptr ? best->due_ns : kNeverDue;
  }
  // Whether work goes before other work at this moment, shares left aside.  A due time that has passed is no more
  // urgent than one that can still be met.
  static bool goes_before(Work work, int64_t due_ns, Work other, int64_t other_ns, int64_t now_ns) {
    const int own = urgency(work, due_ns, now_ns), its = urgency(other, other_ns, now_ns);
    return own != its ? own < its : due_ns < other_ns;
  }
  // The due time of the two that goes first.
  static int64_t sooner(int64_t due_ns, int64_t other_ns, int64_t now_ns) {
    return goes_before(work_of(other_ns, now_ns), other_ns, work_of(due_ns, now_ns), due_ns, now_ns) ? other_ns
                                                                                                     : due_ns;
  }

 private:
  // At most so much is saved up.  What a class owes after a step that is longer than kStepNs is kept whole; its bound
  // is for a process that was stopped amid a step.
  static constexpr int64_t kMostEarnedNs = 4 * kStepNs, kMostOwedNs = 10'000'000'000;

  static int urgency(Work work, int64_t due_ns, int64_t now_ns) {
    if (work == Work::kLive) return due_ns < now_ns + kSoonNs ? 0 : 2;
    return work == Work::kWaitedFor ? 1 : 3;
  }
  // In the line of one class.
  static bool is_before(const Waiter& one, const Waiter& other) {
    return one.work == Work::kLive ? one.asked_ns < other.asked_ns : one.due_ns < other.due_ns;
  }
  // The live work that is due first; null: there is none.
  Waiter* soonest() const {
    Waiter* best = firsts_[static_cast<size_t>(Work::kLive)];
    for (Waiter* each = best; each != nullptr; each = each->next)
      if (each->due_ns < best->due_ns) best = each;
    return best;
  }
  bool is_soon(int64_t now_ns) const { return waits(Work::kLive) && soonest()->due_ns < now_ns + kSoonNs; }
  // There is live work.
  Waiter& next_live(int64_t now_ns) const {
    Waiter* const first = firsts_[static_cast<size_t>(Work::kLive)];
    if (!is_soon(now_ns)) return *first;
    Waiter* const best = soonest();
    if (best->due_ns > kDueAtOnce && best->due_ns <= now_ns + kStandNs) return *best;
    for (Waiter* each = first; each != nullptr && each->asked_ns + kStandNs <= now_ns; each = each->next)
      if (each->due_ns > kDueAtOnce) return *each;
    return *best;
  }
  // The live work that asked first has waited so long.
  bool has_stood(int64_t stood_ns, int64_t now_ns) const {
    return waits(Work::kLive) && firsts_[static_cast<size_t>(Work::kLive)]->asked_ns + stood_ns <= now_ns;
  }
  Waiter*& first(Work work) { return firsts_[static_cast<size_t>(work)]; }
  bool waits(Work work) const { return firsts_[static_cast<size_t>(work)] != nullptr; }
  // One of its steps goes before all others now.
  bool is_to_be_paid(Work work, int64_t now_ns) const {
    const auto i = static_cast<size_t>(work);
    return earned_ns_[i] >= kStepNs && !(was_paid_[i] && has_stood(kLongStandNs, now_ns));
  }

  Work choose(int64_t now_ns) {
    const bool live = waits(Work::kLive), waited_for = waits(Work::kWaitedFor), batch = waits(Work::kBatch);
    if (batch && (live || waited_for) && is_to_be_paid(Work::kBatch, now_ns)) return paid(Work::kBatch);
    if (!waited_for) return live ? Work::kLive : Work::kBatch;
    if (!is_soon(now_ns) && !has_stood(kStandNs, now_ns)) return Work::kWaitedFor;
    return is_to_be_paid(Work::kWaitedFor, now_ns) ? paid(Work::kWaitedFor) : Work::kLive;
  }
  Work paid(Work work) {
    is_paid_ = true;
    return work;
  }

  std::array<Waiter*, kClasses> firsts_ = {};
  std::array<int64_t, kClasses> earned_ns_ = {};
  std::array<bool, kClasses> was_paid_ = {};  // an earned step since the last live one
  size_t waiting_ = 0;
  bool is_paid_ = false;   // the step that runs goes before others by its share
  bool had_time_ = false;  // it could have waited for kSoonNs
};

}  // namespace syrinx
