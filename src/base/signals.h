// Ctrl-C and SIGTERM become a flag that long work looks at; a second one ends the process at once.  SIGPIPE is ignored,
// so that a closed pipe is an error of write() and not the end of the process.  For programs (src/cli), not the
// library.
#pragma once

#include <atomic>

namespace syrinx {

// Called once, early in main().  System calls that block are interrupted (EINTR) rather than restarted, so a program
// that waits for its standard input also sees the flag.
void install_signal_handlers();

// True from the first SIGINT, SIGTERM or request_cancel().
const std::atomic<bool>& cancel_flag();
inline bool cancel_requested() { return cancel_flag().load(std::memory_order_relaxed); }
int cancel_signal();  // the signal that set the flag, 0 when none did
void request_cancel();
void clear_cancel();  // for tests

}  // namespace syrinx
