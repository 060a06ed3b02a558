// Sessions of several threads take turns at something that serves one at a time, in the order in which they ask: with a
// plain mutex one session can come back again and again before another one wakes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace syrinx {

class Turns {
 public:
  // Waits for its turn, which lasts as long as the object.
  class Turn {
   public:
    explicit Turn(Turns& turns) : turns_(turns) { turns_.begin(); }
    ~Turn() { turns_.end(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Turns& turns_;
  };

  // How many have asked and are not done: the one whose turn it is, and those that wait.
  uint64_t asking() const {
    const std::lock_guard lock(mutex_);
    return next_ - serving_;
  }

 private:
  void begin() {
    std::unique_lock lock(mutex_);
    const uint64_t ticket = next_++;
    changed_.wait(lock, [&] { return serving_ == ticket; });
  }
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ++serving_;
    }
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t next_ = 0, serving_ = 0;
};

}  // namespace syrinx
