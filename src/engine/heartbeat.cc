#include "engine/heartbeat.h"

#include <algorithm>
#include <chrono>

namespace syrinx {

Heartbeat::Heartbeat(std::function<void()> beat, const HeartbeatOptions& options, const Clock& clock)
    : beat_(std::move(beat)), options_(options), clock_(clock), worked_ns_(clock.now_ns()), thread_([this] {
        run();
      }) {}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_one();
  thread_.join();
}

void Heartbeat::run() {
  double wait_ms = options_.idle_ms;
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, std::chrono::duration<double, std::milli>(wait_ms), [this] { return stop_; })) {
    const int64_t begun_ns = clock_.now_ns();
    const double idle_ms = static_cast<double>(begun_ns - worked_ns_.load(std::memory_order_relaxed)) * 1e-6;
    wait_ms = options_.idle_ms - idle_ms;
    if (wait_ms > 0) continue;
    lock.unlock();
    beat_();
    beats_.fetch_add(1, std::memory_order_relaxed);
    lock.lock();
    const double beat_ms = static_cast<double>(clock_.now_ns() - begun_ns) * 1e-6;
    wait_ms = std::max(options_.idle_ms, beat_ms / options_.share - beat_ms);
  }
}

}  // namespace syrinx
