// Sessions of several threads take turns at something that serves one at a time, in the order in which they ask: with a
// plain mutex one session can come back again and again before another one wakes.  Those of the first class go before
// the others, of whom one gets its turn behind every kFirstInARow of them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace syrinx {

class Turns {
 public:
  enum class Class { kFirst, kUsual };
  static constexpr int kFirstInARow = 16;

  // Waits for its turn, which lasts as long as the object.
  class Turn {
   public:
    explicit Turn(Turns& turns, Class of = Class::kUsual) : turns_(turns), class_(of) { turns_.begin(class_); }
    ~Turn() { turns_.end(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    // Stands behind those who wait, if there are any, and returns when it is its turn again.
    void give_way() {
      if (turns_.asking() == 1) return;
      turns_.end();
      turns_.begin(class_);
    }

   private:
    Turns& turns_;
    const Class class_;
  };

  // How many have asked and are not done: the one whose turn it is, and those that wait.
  uint64_t asking() const {
    const std::lock_guard lock(mutex_);
    return (taken_ ? 1 : 0) + first_.waiting() + usual_.waiting();
  }

 private:
  struct Line {
    uint64_t next = 0, serving = 0;
    uint64_t waiting() const { return next - serving; }
  };

  void begin(Class of) {
    std::unique_lock lock(mutex_);
    Line& own = of == Class::kFirst ? first_ : usual_;
    const uint64_t ticket = own.next++;
    changed_.wait(lock, [&] { return !taken_ && own.serving == ticket && &own == &next_line(); });
    taken_ = true;
    ++own.serving;
    in_a_row_ = of == Class::kFirst && usual_.waiting() > 0 ? in_a_row_ + 1 : 0;
  }
  void end() {
    {
      const std::lock_guard lock(mutex_);
      taken_ = false;
    }
    changed_.notify_all();
  }
  const Line& next_line() const {
    const bool first = first_.waiting() > 0 && (usual_.waiting() == 0 || in_a_row_ < kFirstInARow);
    return first ? first_ : usual_;
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool taken_ = false;
  Line first_, usual_;
  int in_a_row_ = 0;  // of the first class, while others waited
};

}  // namespace syrinx
