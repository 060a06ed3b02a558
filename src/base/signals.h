// Ctrl-C and SIGTERM become a flag that long work looks at; a second one ends the process at once.  SIGPIPE and
// SIGXFSZ are ignored, so that a closed pipe, or a file as long as it may become, is an error of write() and not the
// end of the process, and recordings may be shortened while they are read (watched_pages.h).  For programs (src/cli),
// not the library.
#pragma once

#include <sys/types.h>

#include <atomic>

namespace syrinx {

// Called once, early in main().  System calls that block are interrupted (EINTR) rather than restarted, so a program
// that waits for its standard input also sees the flag.
void install_signal_handlers();

// From now on SIGHUP asks for files to be read again instead of ending the program.  That of a terminal that goes away
// sets the flag below, as SIGTERM does, or is ignored as before in a program that `nohup` has started.
void catch_hangup();
// Whether a signal with this si_code and si_pid is one of the shell that leads `session`.  Both are 0 of who sits
// outside of a container.
constexpr pid_t kNoSession = -1;  // there is no terminal
bool is_from_leader(int code, pid_t sender, pid_t session);
// Whether files have been asked to be read again since the last call.
bool take_reload_request();

// True from the first SIGINT, SIGTERM, hangup or request_cancel().
const std::atomic<bool>& cancel_flag();
inline bool cancel_requested() { return cancel_flag().load(std::memory_order_relaxed); }
int cancel_signal();  // the signal that set the flag, 0 when none did; of Ctrl-C and another one the other
void request_cancel();
void clear_cancel();  // for tests
// Puts the flag back and catches Ctrl-C and SIGTERM anew, for a conversation that goes on behind an interrupted answer.
// The flag of another signal than Ctrl-C's stays, also of one that comes meanwhile.
void resume_after_interrupt();

}  // namespace syrinx
