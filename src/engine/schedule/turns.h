// Sessions of several threads take turns at something that serves one at a time: whose work is due first goes first,
// and of what is due at the same time, or never, what was asked for first.  With a plain mutex one session can come
// back again and again before another one wakes.
//
// What is never due is batch work: it waits for all that is, and of it one gets its turn behind every kDueInARow of the
// others.  When work is due is its owner's to say: of speech, when its listener runs out of sound
// (SpeechStream::due_ns()); of a stream that is heard, what SoundPace says (sound_pace.h).
//
// Threads that share their turns have one of them at a time in the line.  Whoever of them has the turn puts the next
// one there before it ends (Turn::line_up()), asleep as it may be: else batch work would go behind every such turn.
//
// Who may leave meanwhile says whether his turn is still wanted: he is asked while he waits, and once more when it has
// come, so that nothing is computed for nobody.
//
// A wait costs one lock and one wake-up of the one whose turn it is; nothing is allocated.  A turn whose work is due is
// a step for the metrics (step_counts.h): its end looks at the clock and counts, before the next one begins.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "base/clock.h"
#include "base/due.h"
#include "base/step_counts.h"

namespace syrinx {

class Turns {
  // Of a thread that waits, on its stack.
  struct Waiter {
    int64_t due_ns = kNeverDue;
    bool is_served = false;
    Waiter* next = nullptr;
    std::condition_variable changed = {};
  };

 public:
  static constexpr int kDueInARow = 16;
  static constexpr std::chrono::milliseconds kLook{20};  // how soon one who waits notices that nobody wants his turn

  // The clock, by which work is due, must outlive this.
  explicit Turns(const Clock& clock = system_clock()) : clock_(clock) {}

  // Where a thread stands in line, which another one may have put there.  It outlives that, and the turn that begins
  // with it ends it.
  class Place {
    friend class Turns;
    Waiter waiter_;
    bool is_taken_ = false;  // in the line, or served
  };

  // Waits for its turn, which lasts as long as the object.
  class Turn {
   public:
    explicit Turn(Turns& turns, int64_t due_ns = kNeverDue) : turns_(turns), due_ns_(due_ns) {
      turns_.begin(due_ns_);
      began_ns_ = turns_.clock_.now_ns();
    }
    // From where it stands already, if somebody has lined it up.
    Turn(Turns& turns, Place& place, int64_t due_ns) : turns_(turns), due_ns_(due_ns) {
      turns_.begin(place, due_ns_);
      began_ns_ = turns_.clock_.now_ns();
    }
    // `is_wanted` is asked every kLook while it waits, and once when its turn has come, on this thread; it must neither
    // wait nor throw.  Empty: always.  Once it has said no the turn is others', and is_mine() is false.
    Turn(Turns& turns, int64_t due_ns, const std::function<bool()>& is_wanted) : turns_(turns), due_ns_(due_ns) {
      is_mine_ = turns_.begin(due_ns_, is_wanted);
      began_ns_ = turns_.clock_.now_ns();
    }
    ~Turn() {
      if (!is_mine_) return;
      count();
      turns_.end();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    bool is_mine() const { return is_mine_; }

    // Stands in line again, if anybody does, behind those who are due no later, and returns when it is its turn again.
    void give_way() {
      if (turns_.asking() == 1) return;
      count();
      turns_.end();
      turns_.begin(due_ns_);
      began_ns_ = turns_.clock_.now_ns();
    }

    // When it must be over lest it be late, where that is not when it is due.
    void set_deadline(int64_t deadline_ns) { deadline_ns_ = deadline_ns; }

    // Puts another thread's place, not taken yet, into the line.
    void line_up(Place& place, int64_t due_ns) {
      const std::lock_guard lock(turns_.mutex_);
      turns_.put(place.waiter_, due_ns);
      place.is_taken_ = true;
    }

   private:
    void count() const {
      if (due_ns_ == kNeverDue) return;
      const int64_t now_ns = turns_.clock_.now_ns();
      turns_.steps_.note(now_ns - began_ns_, is_late(deadline_ns_, now_ns));
    }

    Turns& turns_;
    const int64_t due_ns_;
    int64_t deadline_ns_ = due_ns_, began_ns_ = 0;
    bool is_mine_ = true;
  };

  // How many have asked and are not done: the one whose turn it is, and those that wait.
  uint64_t asking() const {
    const std::lock_guard lock(mutex_);
    return (taken_ ? 1 : 0) + due_.waiting + batch_.waiting;
  }
  uint64_t waiting() const {
    const std::lock_guard lock(mutex_);
    return due_.waiting + batch_.waiting;
  }
  // The turns of work that is due, since the beginning.
  StepFigures steps() const { return steps_.read(); }

 private:
  // In the order of serving.
  struct Line {
    void put(Waiter& waiter) {
      Waiter** at = &first;
      while (*at != nullptr && (*at)->due_ns <= waiter.due_ns) at = &(*at)->next;
      waiter.next = *at;
      *at = &waiter;
      ++waiting;
    }
    Waiter& take() {
      Waiter& taken = *first;
      first = taken.next;
      --waiting;
      return taken;
    }
    void remove(Waiter& waiter) {
      Waiter** at = &first;
      while (*at != &waiter) at = &(*at)->next;
      *at = waiter.next;
      --waiting;
    }
    Waiter* first = nullptr;
    uint64_t waiting = 0;
  };

  void begin(int64_t due_ns) {
    Place own;
    begin(own, due_ns);
  }
  void begin(Place& own, int64_t due_ns) {
    std::unique_lock lock(mutex_);
    if (!own.is_taken_) {
      if (!taken_) {  // so nobody waits
        taken_ = true;
        in_a_row_ = 0;
        return;
      }
      put(own.waiter_, due_ns);
    }
    own.waiter_.changed.wait(lock, [&] { return own.waiter_.is_served; });
    own.waiter_.is_served = own.is_taken_ = false;
  }
  // False where nobody wants it any more.
  bool begin(int64_t due_ns, const std::function<bool()>& is_wanted) {
    if (!is_wanted) {
      begin(due_ns);
      return true;
    }
    if (!wait_wanted(due_ns, is_wanted)) return false;
    if (is_wanted()) return true;
    end();
    return false;
  }
  // False: it has left the line.
  bool wait_wanted(int64_t due_ns, const std::function<bool()>& is_wanted) {
    Waiter own;
    std::unique_lock lock(mutex_);
    if (!taken_) {
      taken_ = true;
      in_a_row_ = 0;
      return true;
    }
    put(own, due_ns);
    while (!own.changed.wait_for(lock, kLook, [&] { return own.is_served; })) {
      lock.unlock();
      const bool goes_on = is_wanted();
      lock.lock();
      if (goes_on || own.is_served) continue;
      line_of(due_ns).remove(own);
      return false;
    }
    return true;
  }
  void put(Waiter& waiter, int64_t due_ns) {
    waiter.due_ns = due_ns;
    line_of(due_ns).put(waiter);
  }
  Line& line_of(int64_t due_ns) { return due_ns == kNeverDue ? batch_ : due_; }
  // The turn is handed over, so that nobody who comes now takes it from who waits.
  void end() {
    const std::lock_guard lock(mutex_);
    taken_ = due_.waiting + batch_.waiting > 0;
    if (!taken_) return;
    const bool is_due = due_.waiting > 0 && (batch_.waiting == 0 || in_a_row_ < kDueInARow);
    Waiter& next = is_due ? due_.take() : batch_.take();
    in_a_row_ = is_due && batch_.waiting > 0 ? in_a_row_ + 1 : 0;
    next.is_served = true;
    next.changed.notify_one();  // under the lock: it is gone as soon as its thread has seen this
  }

  const Clock& clock_;
  StepCounts steps_;
  mutable std::mutex mutex_;
  bool taken_ = false;
  Line due_, batch_;
  int in_a_row_ = 0;  // of what is due, while batch work waited
};

}  // namespace syrinx
