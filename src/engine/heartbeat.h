// Keeps an idle engine awake: while nothing is asked of it, a small piece of real work runs now and then, so that the
// first request after a pause finds code, tables, weights and threads as the one before left them (spec
// transducer-asr.md, section 5.6 (3)).  Bounded: it never takes more than its share of one core.
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
  double idle_ms = 50;  // without work before a beat, and between two beats at least
  double share = 0.01;  // of one core, at most
};

class Heartbeat {
 public:
  // `beat` runs on a thread of this object, never twice at once; it takes the locks that its work needs.
  explicit Heartbeat(std::function<void()> beat, const HeartbeatOptions& options = {},
                     const Clock& clock = system_clock());
  // Waits for a beat that is running.
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // Real work was done just now.  Any thread; never waits.
  void note() { worked_ns_.store(clock_.now_ns(), std::memory_order_relaxed); }
  uint64_t beats() const { return beats_.load(std::memory_order_relaxed); }

 private:
  void run();

  const std::function<void()> beat_;
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
