// Keeps an idle engine awake: while nothing is asked of it, a small piece of real work runs now and then, so that the
// first request after a pause finds code, tables, weights and threads as the one before left them (spec
// transducer-asr.md, section 5.6 (3)).  Bounded: what it says that it worked never is more than its share of one core.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "base/clock.h"

namespace syrinx {

struct HeartbeatOptions {
  double idle_ms = 50;       // without work before a beat, and between two beats at least
  double share = 0.01;       // of one core, at most
  double retry_ms = 10'000;  // behind a beat that threw
};

class Heartbeat {
 public:
  // `beat` runs on a thread of this object, never twice at once; it takes the locks that its work needs, and returns
  // how long it worked, in milliseconds of one core: those of all its threads, without what it waited for others.  What
  // it throws is logged, and the beat left out.
  explicit Heartbeat(std::function<double()> beat, const HeartbeatOptions& options = {},
                     const Clock& clock = system_clock());
  // Waits for a beat that is running.
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // Real work was done just now.  Any thread; never waits.
  void note() { worked_ns_.store(clock_.now_ns(), std::memory_order_relaxed); }
  // That have ended well.  Any thread.
  uint64_t beats() const { return beats_.load(std::memory_order_relaxed); }

 private:
  void run();
  double beat();

  const std::function<double()> beat_;
  const HeartbeatOptions options_;
  const Clock& clock_;
  std::atomic<int64_t> worked_ns_;
  std::atomic<uint64_t> beats_{0};
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace syrinx
