#include "audio/sandbox/sandbox.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <vector>

namespace syrinx {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;  // limits alone
#endif

// Calls that use the socket, manage memory, and end; every other one answers EPERM.
constexpr std::array kAllowed = {
    SYS_read,          SYS_write,     SYS_recvfrom,        SYS_sendto,      SYS_brk,        SYS_munmap,
    SYS_mremap,        SYS_madvise,   SYS_futex,           SYS_exit,        SYS_exit_group, SYS_rt_sigreturn,
    SYS_clock_gettime, SYS_nanosleep, SYS_clock_nanosleep, SYS_sched_yield, SYS_setitimer,  SYS_restart_syscall};
constexpr std::array kAllowedUnlessExecutable = {SYS_mmap, SYS_mprotect};

sock_filter load(size_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }
sock_filter answer(uint32_t what) { return BPF_STMT(BPF_RET | BPF_K, what); }
// Skips one instruction where the number is another one.
sock_filter if_equal(uint32_t number) { return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1); }

std::vector<sock_filter> make_filter() {
  constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;
  constexpr size_t kProtection = offsetof(seccomp_data, args) + 2 * sizeof(uint64_t);  // little endian: the low half
  std::vector<sock_filter> filter = {load(offsetof(seccomp_data, arch)),
                                     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
                                     answer(SECCOMP_RET_KILL_PROCESS), load(offsetof(seccomp_data, nr))};
  for (const long number : kAllowed) {
    filter.push_back(if_equal(static_cast<uint32_t>(number)));
    filter.push_back(answer(SECCOMP_RET_ALLOW));
  }
  for (const long number : kAllowedUnlessExecutable) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 4));
    filter.push_back(load(kProtection));
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1));
    filter.push_back(answer(kRefuse));
    filter.push_back(answer(SECCOMP_RET_ALLOW));
  }
  filter.push_back(answer(kRefuse));
  return filter;
}

// False where the system refuses it for another reason than that it has none.
bool filter_calls() {
  if (kArchitecture == 0) return true;
  std::vector<sock_filter> filter = make_filter();
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  // A system that knows an answer of filters has them, and found a fault in this one.
  const uint32_t known = SECCOMP_RET_ERRNO;
  return ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &known) != 0;
}

// Bytes of addresses in use; where /proc tells nothing, more than the libraries need.
size_t mapped_bytes() {
  constexpr size_t kGuess = size_t{1} << 30;
  const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return kGuess;
  std::array<char, 64> text{};
  const ssize_t got = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  const size_t pages = got > 0 ? std::strtoul(text.data(), nullptr, 10) : 0;
  return pages == 0 ? kGuess : pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

// `more` until the hard limit.
template <class Resource>
bool limit(Resource resource, rlim_t most, rlim_t more = 0) {
  rlimit now{};
  if (::getrlimit(resource, &now) != 0) return false;
  const rlim_t hard = std::min(now.rlim_max, most + more);  // RLIM_INFINITY is the largest number
  const rlimit wanted{std::min(most, hard - std::min(more, hard)), hard};
  return ::setrlimit(resource, &wanted) == 0;
}

}  // namespace

std::string enter_sandbox(const SandboxLimits& limits) {
  const size_t memory = mapped_bytes() + limits.memory_bytes;
  if (!limit(RLIMIT_CORE, 0)) return "RLIMIT_CORE";
  if (!limit(RLIMIT_CPU, limits.cpu_seconds, 1)) return "RLIMIT_CPU";  // SIGXCPU, which tells more than SIGKILL
  if (!limit(RLIMIT_FSIZE, 0)) return "RLIMIT_FSIZE";
  if (!limit(RLIMIT_NPROC, 0)) return "RLIMIT_NPROC";
  if (!limit(RLIMIT_NOFILE, 0)) return "RLIMIT_NOFILE";
  if (!limit(RLIMIT_AS, memory)) return "RLIMIT_AS";
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "PR_SET_NO_NEW_PRIVS";
  if (!filter_calls()) return "seccomp";
  return {};
}

void allow_processor_time(double seconds) {
  const double whole = std::floor(seconds);
  const itimerval timer{{0, 0}, {static_cast<time_t>(whole), static_cast<suseconds_t>((seconds - whole) * 1e6)}};
  ::setitimer(ITIMER_PROF, &timer, nullptr);
}

}  // namespace syrinx
