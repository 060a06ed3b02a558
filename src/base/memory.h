// Memory that this process uses and that the machine has left.  Bytes; 0 when the system does not say.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace syrinx {

uint64_t peak_rss_bytes();     // the most that was ever resident, mapped pages included (VmHWM)
uint64_t current_rss_bytes();  // resident now (VmRSS)
uint64_t total_memory_bytes();
uint64_t virtual_memory_bytes();  // of this process, mapped (VmSize)

double process_cpu_seconds();  // that all threads of this process have computed

// Blocks of some hundred kilobytes go back to the system as soon as they are freed, by any thread, from now on.  glibc
// by itself keeps them where one has been freed before, and so the most that many threads ever used at once.
void give_back_what_is_freed();

// Lets pages leave this process that it does not use now: freed memory of the allocator, and the pages of program and
// libraries that are as in their files.  Code still in use comes back from the system's file cache, some microseconds
// for 64 kB.  For a program between its phases (started, loaded): most code of one never runs in the next.  Under a
// debugger code stays.
void give_back_unused_pages();

// Space that this user may still fill on the file system of `path`, which need not exist yet: its nearest existing
// parent counts.  Errors: kIo.
Result<uint64_t> free_disk_bytes(const std::string& path);

}  // namespace syrinx
