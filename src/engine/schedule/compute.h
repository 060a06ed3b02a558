// The threads that compute, and the scheduler that says for whom: engines that share one never compute at the same
// time, so two models never put two teams on the same cores.  The process has one; tests and programs may make their
// own.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/thread_team.h"
#include "engine/schedule/scheduler.h"

namespace syrinx {

class Compute {
 public:
  explicit Compute(const Clock& clock = system_clock()) : scheduler_(clock), growing_(scheduler_) {}
  Compute(const Compute&) = delete;
  Compute& operator=(const Compute&) = delete;

  // The process's own: made when it is first asked for, gone with its last owner.  Any thread.
  static std::shared_ptr<Compute> shared();

  Scheduler& scheduler() { return scheduler_; }
  // So many threads, as a part of a team that is as large as the largest part.  Used in turns of the scheduler only;
  // this object must outlive it.  Waits for the step that runs where the team must grow; not from within a turn.
  ThreadTeam team(int threads);
  // Threads of the whole team.
  int threads() const { return whole_.size(); }

 private:
  Scheduler scheduler_;
  StepQueue growing_;
  ThreadTeam whole_{1};
};

}  // namespace syrinx
