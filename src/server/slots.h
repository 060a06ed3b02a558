// A fixed number of threads that each make one answer at a time.  Who asks when all are busy is told so at once; nobody
// waits in line, so what has begun is never slowed by what has not.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace syrinx::server {

// Of one slot, for whoever asks whether it is stuck.
class SlotWatch {
 public:
  explicit SlotWatch(const Clock& clock) : clock_(clock) {}
  // Around each call that waits for the engine.
  void wait_begins() { since_ns_.store(clock_.now_ns(), std::memory_order_relaxed); }
  void wait_ends() { since_ns_.store(kIdle, std::memory_order_relaxed); }
  double waiting_s() const;  // 0: not waiting

 private:
  static constexpr int64_t kIdle = INT64_MIN;
  const Clock& clock_;
  std::atomic<int64_t> since_ns_{kIdle};
};

class SlotPool {
 public:
  // Run on a slot's thread; what one of them throws ends it, and is logged.
  using Job = std::function<void(SlotWatch& watch)>;
  using Done = std::function<void()>;

  explicit SlotPool(size_t slots, const Clock& clock = system_clock());
  ~SlotPool();  // waits for the jobs that run
  // Makes the threads; once, before any job.  kUnavailable: not all can be made, and the pool is of no use.
  Status start();
  SlotPool(const SlotPool&) = delete;
  SlotPool& operator=(const SlotPool&) = delete;

  // False when no slot is free.  `done` is called on the slot's thread once the slot is free again, so that a client
  // that hears of the end can ask for the next thing at once.  Any thread; does not wait.
  bool try_start(Job job, Done done);
  size_t size() const { return slots_.size(); }
  size_t busy() const { return busy_.load(std::memory_order_acquire); }
  double longest_wait_s() const;  // of any slot for the engine

 private:
  struct Slot {
    explicit Slot(const Clock& clock) : watch(clock) {}
    SlotWatch watch;
    Job job;  // by mutex_; empty: free
    Done done;
    bool taken = false;
    std::condition_variable changed;
    std::thread thread;
  };
  void run(Slot& slot);

  std::mutex mutex_;
  bool closing_ = false;
  std::atomic<size_t> busy_{0};
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace syrinx::server
