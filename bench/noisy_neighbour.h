// A process beside this one that reads and writes through memory on every core until this one ends.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <thread>
#include <vector>

namespace syrinx::bench {

class NoisyNeighbour {
 public:
  // To be made before any thread.  `threads` of them, each in memory of its own, more than the caches hold.  there()
  // says whether the system made the process.
  explicit NoisyNeighbour(unsigned threads) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::vector<std::thread> all;
    for (unsigned i = 0; i < threads; ++i) all.emplace_back(stream);
    for (std::thread& thread : all) thread.join();
    ::_exit(0);
  }
  ~NoisyNeighbour() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  NoisyNeighbour(const NoisyNeighbour&) = delete;
  NoisyNeighbour& operator=(const NoisyNeighbour&) = delete;
  bool there() const { return pid_ > 0; }

 private:
  [[noreturn]] static void stream() {
    std::vector<uint64_t> memory(size_t{8} << 20);
    for (volatile uint64_t* const words = memory.data();;)
      for (size_t i = 0; i < memory.size(); ++i) words[i] = words[i] + i;
  }

  const pid_t pid_;
};

}  // namespace syrinx::bench
