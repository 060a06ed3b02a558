// Times of rounds at which a whole team works, and in which of them the machine took a core away: a slow round is ours
// to mend where every member had a core all the time, and the machine's where one had none.
#pragma once

#include <cstddef>
#include <vector>

#include "base/thread_team.h"

namespace syrinx::bench {

// Milliseconds, sorted.
class Times {
 public:
  void add(double ms) { ms_.push_back(ms); }
  void sort();
  bool empty() const { return ms_.empty(); }
  size_t size() const { return ms_.size(); }
  double min() const { return ms_.front(); }
  double max() const { return ms_.back(); }
  double median() const { return at(0.5); }
  const std::vector<double>& values() const { return ms_; }
  double at(double share) const;  // 0.99: the smallest value that 99 % do not exceed

 private:
  std::vector<double> ms_;
};

// How long the members of a team wanted to run and had no core: the kernel's own count for each thread (the second
// number of /proc/thread-self/schedstat).  What a hypervisor takes is seen by no kernel above it.
// Made and asked between the team's jobs, by its caller.
class CoreWaits {
 public:
  explicit CoreWaits(ThreadTeam& team);
  ~CoreWaits();
  CoreWaits(const CoreWaits&) = delete;
  CoreWaits& operator=(const CoreWaits&) = delete;

  bool known() const { return known_; }  // false where this kernel does not count
  // Milliseconds of each member, the caller first, since it was asked last.
  const std::vector<double>& since_last();

 private:
  ThreadTeam& team_;
  std::vector<int> files_;  // of each member
  std::vector<double> total_ms_, waited_ms_;
  bool known_ = true;
};

// Rounds, told apart by whether a member was without a core for kLossMs or more; where the kernel does not tell, all
// are in `all` alone.
struct Rounds {
  static constexpr double kLossMs = 0.1;

  Times all, undisturbed;
  bool known = false;      // whether the kernel tells
  size_t caller_lost = 0;  // rounds in which the calling thread was without one,
  size_t others_lost = 0;  // or only another member

  void add(double ms, CoreWaits& waits);  // waits.since_last() was asked when the round began
  void sort() { all.sort(), undisturbed.sort(); }
};

// Rounds of about `round_ms` in which every member counts in registers and meets the others at a barrier each tenth of
// a millisecond, as in a frame: what the machine and the barriers add by themselves.
Rounds empty_rounds(ThreadTeam& team, double round_ms, size_t rounds);

}  // namespace syrinx::bench
