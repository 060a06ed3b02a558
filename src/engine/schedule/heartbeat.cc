#include "engine/schedule/heartbeat.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "base/log.h"

namespace syrinx {
namespace {

// Where memory lacks, the message may find none either.
void warn(const char* what, double retry_ms) noexcept {
  try {
    log_warning("the heartbeat failed and is tried again in {:.0f} s: {}", retry_ms / 1000, what);
  } catch (...) {
  }
}

}  // namespace

Heartbeat::Heartbeat(std::function<double()> beat, const HeartbeatOptions& options, const Clock& clock)
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
    const double idle_ms = static_cast<double>(clock_.now_ns() - worked_ns_.load(std::memory_order_relaxed)) * 1e-6;
    wait_ms = options_.idle_ms - idle_ms;
    if (wait_ms > 0) continue;
    lock.unlock();
    wait_ms = beat();
    lock.lock();
  }
}

// Returns how many milliseconds later the next one may be.
double Heartbeat::beat() {
  try {
    const double worked_ms = beat_();
    beats_.fetch_add(1, std::memory_order_relaxed);
    return std::max(options_.idle_ms, worked_ms / options_.share);
  } catch (const std::exception& thrown) {
    warn(thrown.what(), options_.retry_ms);
  } catch (...) {
    warn("it threw no exception of the library", options_.retry_ms);
  }
  return options_.retry_ms;
}

}  // namespace syrinx
