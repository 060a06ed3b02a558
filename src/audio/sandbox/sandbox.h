// Takes from this process what a decoder does not need, before it sees a byte of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace syrinx {

struct SandboxLimits {
  size_t memory_bytes;   // besides what is mapped now
  uint64_t cpu_seconds;  // of the whole process
};

// For good: no file, socket or process can be opened (limits, and seccomp where the system has it), no program run, no
// file grow, no right be gained.  Returns the name of the limit that the system refused; empty: all hold.
std::string enter_sandbox(const SandboxLimits& limits);

// Ends the process when it has used so much processor time from now on (SIGPROF); called again, counts anew.
void allow_processor_time(double seconds);

}  // namespace syrinx
