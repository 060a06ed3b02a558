#include "bench/suite/step_probe.h"

#include <chrono>

namespace syrinx::bench {
namespace {

constexpr std::chrono::microseconds kPause{50};  // while nothing runs
constexpr double kLeastMs = 0.01;                // of a wait: what is shorter met no work

}  // namespace

Times StepProbe::stop() {
  stopped_ = true;
  thread_.join();
  waits_.sort();
  return waits_;
}

void StepProbe::run() {
  while (!stopped_) {
    double waited_ms = 0;
    {
      const StepQueue::Turn turn(queue_, kDueAtOnce);
      waited_ms = static_cast<double>(turn.waited_ns()) * 1e-6;
    }
    if (waited_ms < kLeastMs) {
      std::this_thread::sleep_for(kPause);
    } else {
      waits_.add(waited_ms);
    }
  }
}

}  // namespace syrinx::bench
