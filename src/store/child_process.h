// Runs another program without a shell and waits for it.  It gets a process group of its own, so that stopping it also
// stops what it started; its standard input is empty.  One thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace syrinx {

struct ChildProcess {
  std::vector<std::string> arguments;                            // the program first; looked up in PATH
  std::string folder;                                            // where it runs
  std::vector<std::pair<std::string, std::string>> environment;  // set on top of ours
  int64_t timeout_ms = 30 * 60 * 1000;
  const std::atomic<bool>* cancel = nullptr;
  // Asked about every 100 ms; a failure stops the program and is returned.  May be empty.
  std::function<Status()> on_tick;
};

struct ChildResult {
  int exit_status = 0;  // 128 + signal when one ended it
  std::string output;   // the last 4 KiB of what it printed, both streams
};

// Errors: kNotFound (no such program), kUnavailable (time is up), kCancelled, kIo, or what on_tick returned.
Result<ChildResult> run_child(const ChildProcess& child);

}  // namespace syrinx
