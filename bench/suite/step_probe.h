// Measures the steps of work that runs in turns of a scheduler: a thread asks for a turn that is due at once, again and
// again, and does nothing in it.  While other work has the team, each of its waits is one step of that work, with the
// time in which a thread wakes.
#pragma once

#include <atomic>
#include <thread>

#include "bench/suite/rounds.h"
#include "engine/schedule/scheduler.h"

namespace syrinx::bench {

class StepProbe {
 public:
  // The scheduler is borrowed.
  explicit StepProbe(Scheduler& scheduler) : queue_(scheduler), thread_([this] { run(); }) {}
  ~StepProbe() {
    if (thread_.joinable()) stop();
  }
  StepProbe(const StepProbe&) = delete;
  StepProbe& operator=(const StepProbe&) = delete;

  // The waits until now, sorted.  Nothing is measured afterwards.
  Times stop();

 private:
  void run();

  StepQueue queue_;
  std::atomic<bool> stopped_{false};
  Times waits_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace syrinx::bench
