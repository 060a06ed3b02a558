#include "base/thread_team.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "base/check.h"
#include "base/cpu_info.h"
#include "base/log.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace syrinx {
namespace {

inline void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// 50 to 200 microseconds of spinning on today's processors before a member parks in the kernel.
constexpr int kSpins = 4000;
// Inside a job, before a member parks that waits for the others: most of a millisecond, as long as a halted core may
// take to come.
constexpr int kJobSpins = 5 * kSpins;
// More members than cores: whoever spins keeps the core from the one that is waited for.
constexpr int kSpinsOversubscribed = 50;

// Waits until `value` differs from `old`: spins, then parks on the futex behind std::atomic::wait.
// Sequential consistency, here and at the notifying side, because the library skips the wake-up call when it sees no
// waiter: the store of the value and that look must not change places.
// True when it has parked.
template <class T>
bool wait_change(const std::atomic<T>& value, T old, int spins) {
  for (int i = 0; i < spins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return false;
    relax();
  }
  while (value.load(std::memory_order_seq_cst) == old) value.wait(old, std::memory_order_seq_cst);
  return true;
}

void pin_to_nth_core(int n) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || n-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
    return;
  }
}

// Where a member may run: off the core on which its caller begins a job.  A kernel that wakes a thread may put it on
// the core of the one who wakes it though others idle (a guest of KVM counts a halted core as taken), and the two then
// share that core for tens of milliseconds.  A member that has once been moved is woken elsewhere from then on.
class MemberCores {
 public:
  // For a team of so many.
  void prepare(int members) { members_ = members; }
  // A few microseconds when the caller has moved, else nothing.  A mask that somebody else has set since then counts
  // from here on; where it has fewer cores than there are members, they run wherever they are put.
  void keep_off(int core) {
    if (members_ == 0 || core == taken_ || core < 0) return;
    taken_ = core;
    cpu_set_t now;
    if (sched_getaffinity(0, sizeof now, &now) != 0) return;
    if (!CPU_EQUAL(&now, &set_)) allowed_ = set_ = now;
    if (CPU_COUNT(&allowed_) < members_) return;
    cpu_set_t others = allowed_;
    CPU_CLR(core, &others);
    if (pthread_setaffinity_np(pthread_self(), sizeof others, &others) == 0) set_ = others;
  }

 private:
  cpu_set_t allowed_ = {};  // by whoever set it last, this class left out
  cpu_set_t set_ = {};      // as this class left it
  int taken_ = -1;
  int members_ = 0;  // 0: stays where it is put
};

thread_local MemberCores t_cores;
thread_local int t_home = -1;  // of a caller in its job: the core that the members keep off

// A caller that has parked in its job may have been woken on a member's core, which cannot leave it.
void go_home() {
  cpu_set_t mine, home;
  if (t_home < 0 || sched_getcpu() == t_home || sched_getaffinity(0, sizeof mine, &mine) != 0) return;
  if (!CPU_ISSET(t_home, &mine)) return;  // no longer one of the caller's cores
  CPU_ZERO(&home);
  CPU_SET(t_home, &home);
  if (sched_setaffinity(0, sizeof home, &home) != 0 || sched_setaffinity(0, sizeof mine, &mine) == 0) return;
  // Its cores have been taken away meanwhile: all that it may have, rather than one for ever.
  std::memset(&mine, 0xFF, sizeof mine);
  sched_setaffinity(0, sizeof mine, &mine);
}

// A job, on which core its caller began it, and how many members work at it.
struct Call {
  void (*function)(void*, int);
  void* data;
  int core;
  int members;
};

void take_part(void* data, int member) {
  const Call& call = *static_cast<const Call*>(data);
  if (member >= call.members) return;
  t_cores.keep_off(call.core);
  call.function(call.data, member);
}

int spins_of(int members) { return members > cpu_info().logical_cores ? kSpinsOversubscribed : kSpins; }

}  // namespace

ThreadTeam::ThreadTeam(int threads, bool pin) { start(threads, pin); }

ThreadTeam::ThreadTeam(ThreadTeam& whole, int members)
    : whole_(&whole), size_(std::clamp(members, 1, whole.size())), spins_(spins_of(size_)) {}

ThreadTeam::~ThreadTeam() {
  if (whole_ == nullptr) stop();
}

void ThreadTeam::grow(int threads) {
  SYRINX_CHECK(whole_ == nullptr, "a part of a team does not grow");
  if (threads <= size_) return;
  const int before = size_;
  stop();
  start(threads, false);
  // Parts of the team keep their sizes.
  SYRINX_CHECK(size_ >= before, "the system took threads back");
}

void ThreadTeam::start(int threads, bool pin) {
  const int wanted = std::max(1, threads);
  spins_ = spins_of(wanted);
  size_ = 1;
  cpu_set_t allowed;
  keeps_off_ = !pin && sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) >= wanted;
  // Members inherit the masks of the thread that makes them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    threads_.reserve(static_cast<size_t>(wanted - 1));
    for (; size_ < wanted; ++size_) {
      threads_.emplace_back([this, member = size_, pin, wanted, seen = epoch_.load(std::memory_order_relaxed)] {
        if (pin) pin_to_nth_core(member);
        if (keeps_off_) t_cores.prepare(wanted);
        worker(member, seen);
      });
    }
  } catch (const std::exception& error) {
    log_warning("the system gives {} of the {} threads asked for: {}", size_, wanted, error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ThreadTeam::stop() {
  stop_.store(true, std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  epoch_.notify_all();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
  stop_.store(false, std::memory_order_relaxed);
}

void ThreadTeam::worker(int member, uint32_t seen) noexcept {
  while (true) {
    wait_change(epoch_, seen, spins_);
    ++seen;
    if (stop_.load(std::memory_order_acquire)) return;
    function_(data_, member);
    // Only the last one wakes the caller, which may have parked on any earlier count.
    if (finished_.fetch_add(1, std::memory_order_seq_cst) + 1 == size_ - 1) finished_.notify_one();
  }
}

void ThreadTeam::run_raw(Function function, void* data) noexcept {
  if (whole_ != nullptr && size_ > 1) return whole_->run_members(function, data, size_);
  run_members(function, data, size_);
}

void ThreadTeam::run_members(Function function, void* data, int members) noexcept {
  SYRINX_CHECK(!running_.exchange(true, std::memory_order_acquire), "a team serves one caller at a time");
  if (members == 1) {
    function(data, 0);
    running_.store(false, std::memory_order_release);
    return;
  }
  // All members have finished the last job (we waited for them), so nobody reads these now.
  Call call{function, data, sched_getcpu(), members};
  const int home_before = t_home;  // of another team, in whose job this runs
  t_home = keeps_off_ ? call.core : -1;
  function_ = take_part;
  data_ = &call;
  finished_.store(0, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  epoch_.notify_all();
  function(data, 0);
  for (int done = finished_.load(std::memory_order_acquire); done != size_ - 1;
       done = finished_.load(std::memory_order_acquire)) {
    if (wait_change(finished_, done, spins_)) go_home();
  }
  t_home = home_before;
  running_.store(false, std::memory_order_release);
}

void ThreadTeam::barrier() {
  if (size_ == 1) return;
  const uint32_t generation = generation_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    arrived_.store(0, std::memory_order_relaxed);  // published by the next line
    generation_.fetch_add(1, std::memory_order_seq_cst);
    generation_.notify_all();
    return;
  }
  if (wait_change(generation_, generation, kJobSpins / kSpins * spins_)) go_home();
}

Range split_range(size_t count, int member, int members, size_t grain) {
  const size_t units = (count + grain - 1) / grain;
  const size_t m = static_cast<size_t>(member), n = static_cast<size_t>(members);
  const size_t base = units / n, extra = units % n;
  const size_t first = m * base + std::min(m, extra);
  const size_t last = first + base + (m < extra ? 1 : 0);
  return {std::min(first * grain, count), std::min(last * grain, count)};
}

}  // namespace syrinx
