// One team of threads, one step at a time: the threads of sessions take turns at it, in the order of due_queue.h.  The
// process has one scheduler for its team (compute.h); a smaller one guards what an engine has once, a recording's
// encoder say, and is taken before the team's.
//
// A turn is one step for the figures.  Long work is cut into parts: after each of about DueQueue::kStepNs its owner
// gives way, and what is due goes first.  Nothing of the work moves to another thread, so a stream that is alone pays
// one lock a step.
//
// The holder of a smaller scheduler, a line, that waits for the team is as urgent there as the most urgent waiter of
// the line (Turn's `line`): else that one would wait behind all that goes before the holder.
//
// A wait costs one lock and one wake-up of the thread that is next; nothing is allocated.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "base/step_counts.h"
#include "engine/schedule/due_queue.h"

namespace syrinx {

class StepQueue;

class Scheduler {
 public:
  // How soon a waiter that may be cancelled notices that it is.
  static constexpr std::chrono::milliseconds kLook{20};

  // Due times are of this clock, which must outlive the scheduler.
  explicit Scheduler(const Clock& clock = system_clock()) : clock_(clock) {}
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  const Clock& clock() const { return clock_; }
  // Threads that wait, of all queues.  Any thread, no lock.
  size_t waiting() const { return waiting_.load(std::memory_order_relaxed); }
  // A stream that speaks or hears, and so has a step to make at any moment; borrows the scheduler.
  class Open {
   public:
    explicit Open(Scheduler& scheduler) : scheduler_(&scheduler) {
      scheduler_->open_.fetch_add(1, std::memory_order_relaxed);
    }
    Open(Open&& other) noexcept : scheduler_(std::exchange(other.scheduler_, nullptr)) {}
    Open& operator=(Open&&) = delete;
    ~Open() {
      if (scheduler_ != nullptr) scheduler_->open_.fetch_sub(1, std::memory_order_relaxed);
    }

   private:
    Scheduler* scheduler_;
  };
  // How many there are.  Any thread, no lock.
  size_t open() const { return open_.load(std::memory_order_relaxed); }
  // Whether work of a stream that is open may meet other work, so that its parts should be short.  Any thread, no lock.
  bool is_shared() const { return open() > 1 || waiting() > 0; }
  // The due time that goes first: this one, or the most urgent one of all that wait.
  int64_t sooner(int64_t due_ns) const {
    const int64_t now_ns = clock_.now_ns();
    const std::lock_guard lock(mutex_);
    return DueQueue::sooner(due_ns, queue_.first_due_ns(now_ns), now_ns);
  }

 private:
  friend class StepQueue;
  struct Waiter : DueQueue::Waiter {
    StepQueue* queue = nullptr;  // that it waits in; null: in none
    bool is_served = false;
    std::condition_variable changed = {};
  };

  // The holder of this line waits at `queue` in `place`, and goes on waiting no less urgently than this line's waiters;
  // null: it waits no more.  The locks of both are taken, this one's first.
  void holder_waits(StepQueue* queue, Waiter* waiter);
  void hasten_holder(int64_t now_ns);  // by mutex_

  // By mutex_.
  bool try_take();
  void put(Waiter& waiter, StepQueue& queue, int64_t due_ns, Work work, int64_t asked_ns);
  void remove(Waiter& waiter);
  // Ends the step of `work` that began then, and hands over to the next waiter.
  void end(Work work, int64_t began_ns);
  void hand_over(int64_t now_ns);

  const Clock& clock_;
  mutable std::mutex mutex_;
  bool taken_ = false;
  DueQueue queue_;
  StepQueue* holders_queue_ = nullptr;  // where the holder of this line waits, and its place there; null: nowhere
  Waiter* holder_ = nullptr;
  std::atomic<size_t> waiting_{0}, open_{0};
};

// The work of one engine, say, at a scheduler, with the figures of its steps.  Any thread.
class StepQueue {
 public:
  // The scheduler is borrowed.
  explicit StepQueue(Scheduler& scheduler) : scheduler_(scheduler) {}
  StepQueue(const StepQueue&) = delete;
  StepQueue& operator=(const StepQueue&) = delete;

  // A thread's place among those that wait, which another thread may have taken for it.  Outlives its turn.
  class Place {
   public:
    bool is_taken() const { return is_taken_; }

   private:
    friend class StepQueue;
    Scheduler::Waiter waiter_;
    bool is_taken_ = false;  // it waits, or its turn has come
  };
  // Takes a place that is not taken: it waits from now on, or has its turn if nothing runs.  The thread that is to have
  // the turn then makes a Turn of the place.
  void join(Place& place, int64_t due_ns);
  // A more urgent due time for a place that waits; else nothing.
  void hasten(Place& place, int64_t due_ns);

  // Waits until it is this thread's turn, which lasts as long as the object.
  class Turn {
   public:
    explicit Turn(StepQueue& queue, int64_t due_ns = kNeverDue);
    Turn(StepQueue& queue, Place& place);
    // `is_wanted` is polled every Scheduler::kLook while it waits and once when the turn has come, on this thread; it
    // must neither wait nor throw.  Empty: always wanted.  Once it says no, the turn is over: is_mine() is false.
    // `line`: another scheduler that this thread has a turn of; each wait here is as urgent as the most urgent waiter
    // there.  Null: none.
    Turn(StepQueue& queue, int64_t due_ns, const std::function<bool()>& is_wanted, Scheduler* line = nullptr);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    bool is_mine() const { return is_mine_; }
    // How long it has waited, all together.
    int64_t waited_ns() const { return waited_ns_; }
    // Between two steps: waits again, behind what goes before, if anything waits.
    void give_way() { give_way(due_ns_); }
    // The same where the next step is due at another time.
    void give_way(int64_t due_ns);
    // Calls `body` while others have their turns.
    template <class Body>
    auto outside(const Body& body) {
      end();
      const Return back{*this};
      return body();
    }
    // When the step must be over lest it is late, where that is not when it is due.
    void set_deadline(int64_t deadline_ns) { deadline_ns_ = deadline_ns; }
    // False: the turn was asked for as batch work.
    bool is_due() const { return due_ns_ != kNeverDue; }
    // Nothing is made in this turn: it counts as no step.
    void make_nothing() { makes_nothing_ = true; }
    bool makes_nothing() const { return makes_nothing_; }

   private:
    struct Return {
      Turn& turn;
      ~Return() { turn.begin_again(turn.due_ns_); }
    };
    void begin_again(int64_t due_ns);
    void begun(int64_t asked_ns);
    void note_part(int64_t now_ns);
    void count();
    void end();

    StepQueue& queue_;
    Scheduler* const line_ = nullptr;
    int64_t due_ns_;
    // `part_ns_`: when it last could have given way.  `parts_ns_`: length of the parts before, one step of the figures.
    int64_t deadline_ns_ = due_ns_, part_ns_ = 0, parts_ns_ = 0, waited_ns_ = 0;
    // Its place in the order of asking, and how much it has worked since it has that (DueQueue::kSliceNs).
    int64_t place_ns_ = 0, worked_ns_ = 0;
    Work work_ = Work::kBatch;
    bool is_mine_ = true, makes_nothing_ = false;
  };

  const Clock& clock() const { return scheduler_.clock_; }
  Scheduler& scheduler() const { return scheduler_; }
  // Turns of this queue that wait, and those with the one that runs.
  size_t waiting() const { return waiting_.load(std::memory_order_relaxed); }
  size_t asking() const { return asking_.load(std::memory_order_relaxed); }
  // Steps of work that is due, since the beginning.
  StepFigures steps() const { return steps_.read(); }
  // A turn that runs has served so many streams by one step of that length (schedule/rounds.h).
  void note_round(size_t members, int64_t took_ns) { steps_.note_round(members, took_ns); }
  // The longest part of a turn of this queue.
  int64_t longest_step_ns() const { return steps_.longest_ns(); }

 private:
  friend class Scheduler;
  class Held;
  void wait(Place& place);
  void hasten(Scheduler::Waiter& waiter, int64_t due_ns, int64_t now_ns);
  Work begin(int64_t due_ns, Scheduler* line = nullptr);
  bool begin_wanted(int64_t due_ns, const std::function<bool()>& is_wanted, Scheduler* line, Work& work);
  Work pass(Work work, int64_t began_ns, int64_t due_ns, int64_t place_ns, Scheduler* line);

  Scheduler& scheduler_;
  StepCounts steps_;
  std::atomic<size_t> waiting_{0}, asking_{0};
};

}  // namespace syrinx
