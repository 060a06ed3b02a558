// The members of a team that work at one task, a sequence of stages with a barrier after each.
//
// Two tasks may run side by side on one team: each begins with one member alone, and whoever has finished the other
// task joins between two stages.  So a task that is bound by memory and one that is bound by arithmetic share the
// machine, and nobody idles while the longer one ends:
//
//   team.run([&](int member) {
//     if (member == 0) { work_a(a.first()); work_b(b.join(member)); }
//     else             { work_b(b.first(member)); work_a(a.join(member)); }
//   });
//
// Each member runs the same function over all stages; a member that joined passes over those that are done.  What a
// stage wrote is seen by the next ones.  The results of a stage must not depend on how many members share it.
#pragma once

#include <atomic>
#include <cstddef>
#include <limits>

#include "base/thread_team.h"

namespace syrinx::nn {

// A member's part in a stage: it does share `rank` of `size`, with the scratch of `member`.
struct Part {
  int member = 0, rank = 0, size = 1;

  Range split(size_t count, size_t grain = 1) const { return split_range(count, rank, size, grain); }
};

class Crew {
 public:
  // One member's walk through the stages; lives in that member's call.
  class Seat {
   public:
    // body(part); afterwards all members have finished it.
    template <class Body>
    void stage(const Body& body) {
      if (index_ >= from_) {
        body(part_);
        crew_->finish(*this);
      }
      ++index_;
    }
    // The same for what needs nobody's result and gives nobody one before the next stage's end: no barrier.
    template <class Body>
    void together(const Body& body) {
      if (index_ >= from_) body(part_);
    }
    int size() const { return part_.size; }

   private:
    friend class Crew;
    Seat(Crew& crew, Part part, size_t from) : crew_(&crew), part_(part), from_(from) {}
    Crew* crew_;
    Part part_;
    size_t index_ = 0, from_;
  };

  // The team is borrowed.
  explicit Crew(ThreadTeam& team) : team_(team) {}

  // Everybody from the first stage on: each member's seat.
  Seat everyone(int member) { return {*this, {.member = member, .rank = member, .size = team_.size()}, 0}; }

  // Between jobs, before a task that one member begins alone.
  void reset() {
    waiting_.store(0, std::memory_order_relaxed);
    admitted_.store(kNobody, std::memory_order_relaxed);
  }
  // The one who begins; calls leave() after the last stage.
  Seat first(int member) { return {*this, {.member = member, .rank = 0, .size = 1}, 0}; }
  void leave(const Seat& seat);
  // Any other: waits until the stage that is being worked at has ended.
  Seat join(int member);

 private:
  static constexpr size_t kNobody = std::numeric_limits<size_t>::max(), kEnded = kNobody - 1;

  void finish(Seat& seat);

  ThreadTeam& team_;
  alignas(64) std::atomic<int> waiting_{0};
  alignas(64) std::atomic<size_t> admitted_{kNobody};  // the stage from which on everybody works
};

}  // namespace syrinx::nn
