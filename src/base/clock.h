// Monotonic time that tests can replace.  Code that waits or measures takes a `const Clock&`; main passes
// system_clock(). All times are nanoseconds since an arbitrary start.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace syrinx {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t now_ns() const = 0;  // never goes back; any thread

  double now_ms() const { return static_cast<double>(now_ns()) * 1e-6; }
};

inline const Clock& system_clock() {
  class Steady final : public Clock {
   public:
    int64_t now_ns() const override {
      using std::chrono::duration_cast, std::chrono::nanoseconds, std::chrono::steady_clock;
      return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
    }
  };
  static const Steady clock;
  return clock;
}

// Stands still until advanced.
class ManualClock final : public Clock {
 public:
  int64_t now_ns() const override { return now_ns_.load(std::memory_order_acquire); }
  void advance_ns(int64_t by_ns) { now_ns_.fetch_add(by_ns, std::memory_order_acq_rel); }

 private:
  std::atomic<int64_t> now_ns_{0};
};

// Milliseconds since it was made or restarted.
class Stopwatch {
 public:
  explicit Stopwatch(const Clock& clock = system_clock()) : clock_(&clock), start_ns_(clock.now_ns()) {}
  double elapsed_ms() const { return static_cast<double>(clock_->now_ns() - start_ns_) * 1e-6; }
  void restart() { start_ns_ = clock_->now_ns(); }

 private:
  const Clock* clock_;
  int64_t start_ns_;
};

}  // namespace syrinx
