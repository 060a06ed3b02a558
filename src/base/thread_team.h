// A fixed team of threads for steps of a few milliseconds.  run() calls the job once on each member, the caller being
// member 0, and returns when all have finished.  Members spin for a while before they park, so that the next run()
// within a step starts in well under a microsecond and an idle engine uses no processor.
// No allocation, no lock on the fast path.  barrier() may be called inside a job by every member.
//
// One caller at a time, and no run() inside a job: both are bugs and abort.  A job must not throw (the process would
// end).  What the caller wrote before run() is seen by the job; what the job wrote is seen after run().  Members block
// all signals, so that Ctrl-C reaches the program's own thread.
//
// Masks of cores: where the thread that makes a team may use as many cores as it has members, a job first takes the
// core on which its caller is out of the members' masks, and a caller that has waited in the kernel and wakes on
// another core is sent back by a mask of that one core, replaced by its own again at once.  A mask that is set from
// outside holds from the caller's next move on; one that is set on a caller within these microseconds is lost.  Pinned
// teams, and those with fewer cores, leave every mask alone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace syrinx {

class ThreadTeam {
 public:
  // threads >= 1.  Should the system refuse to make so many, size() is smaller.  pin: bind member i, but not the
  // caller, to the i-th core that this process may use.
  explicit ThreadTeam(int threads, bool pin = false);
  // The first `members` of another team, which must outlive this one; fewer where it has fewer.  Teams of one whole
  // serve one caller at a time between them, except those of one member, which run on their caller alone.
  ThreadTeam(ThreadTeam& whole, int members);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return size_; }
  // More members, between two jobs: the threads are made anew.  Not of a part of another team.
  void grow(int threads);

  // job(member) for member in [0, size).  Job is any callable; it is not copied.
  template <class Job>
  void run(Job&& job) {
    run_raw([](void* data, int member) { (*static_cast<std::remove_reference_t<Job>*>(data))(member); },
            const_cast<void*>(static_cast<const void*>(std::addressof(job))));
  }

  // Inside a job: waits until every member has arrived.  What was written before is seen after.
  void barrier();

 private:
  using Function = void (*)(void*, int);
  void start(int threads, bool pin);
  void stop();
  void run_raw(Function function, void* data) noexcept;
  void run_members(Function function, void* data, int members) noexcept;
  void worker(int member, uint32_t seen) noexcept;

  ThreadTeam* whole_ = nullptr;  // null: this is one
  int size_ = 1;                 // changes between jobs only
  int spins_ = 0;                // before a member parks
  bool keeps_off_ = false;       // members keep off the caller's core
  std::vector<std::thread> threads_;
  Function function_ = nullptr;
  void* data_ = nullptr;
  alignas(64) std::atomic<uint32_t> epoch_{0};  // one more for each run; workers wait for a change
  alignas(64) std::atomic<int> finished_{0};
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<uint32_t> generation_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> running_{false};  // catches a second caller
};

// The half-open range of `count` items that `member` of `members` owns.  The ranges are in order, without gaps, and
// begin at multiples of `grain` (>= 1); sizes differ by at most one grain.
struct Range {
  size_t begin = 0;
  size_t end = 0;
};
Range split_range(size_t count, int member, int members, size_t grain = 1);

}  // namespace syrinx
