#include "base/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "base/watched_pages.h"

namespace syrinx {
namespace {

// Lock-free atomics are what a handler may touch.
std::atomic<bool> g_cancel{false};
std::atomic<int> g_signal{0};
std::atomic<bool> g_reload{false};
std::atomic<bool> g_outlives_terminal{false};
std::atomic<pid_t> g_session{kNoSession};  // whose terminal it was started in
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

// Ctrl-C may be pressed behind a signal that ends the program, and does not replace it.
void handle(int signal) {
  int none = 0;
  if (signal == SIGINT)
    g_signal.compare_exchange_strong(none, signal);
  else
    g_signal.store(signal);
  g_cancel.store(true, std::memory_order_release);
}

bool is_without_terminal() {
  const int terminal = ::open("/dev/tty", O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (terminal < 0) return errno == ENXIO;
  ::close(terminal);
  return false;
}

// The kernel sends it of a terminal that is gone, and the shell that ends with it passes it on; which of the two comes
// where both do is open.  All others send it of files that are new.
void handle_hangup(int signal, siginfo_t* info, void* /*context*/) {
  const int error = errno;
  const bool is_passed_on =
      is_from_leader(info->si_code, info->si_pid, g_session.load(std::memory_order_relaxed)) && is_without_terminal();
  if (info->si_code != SI_KERNEL && !is_passed_on)
    g_reload.store(true, std::memory_order_release);
  else if (!g_outlives_terminal.load(std::memory_order_relaxed))
    handle(signal);
  errno = error;
}

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESETHAND;  // the second one takes the default action; no SA_RESTART (see the header)
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

bool is_from_leader(int code, pid_t sender, pid_t session) { return code == SI_USER && sender == session; }

void install_signal_handlers() {
  catch_stop_signals();
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigemptyset(&ignore.sa_mask);
  sigaction(SIGPIPE, &ignore, nullptr);
  sigaction(SIGXFSZ, &ignore, nullptr);
  catch_missing_pages();
}

void catch_hangup() {
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  if (!is_without_terminal()) g_session.store(::getsid(0), std::memory_order_relaxed);
  if (before.sa_handler == SIG_IGN) g_outlives_terminal.store(true, std::memory_order_relaxed);
  struct sigaction action {};
  action.sa_sigaction = handle_hangup;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGHUP, &action, nullptr);
}

bool take_reload_request() { return g_reload.exchange(false, std::memory_order_acq_rel); }

const std::atomic<bool>& cancel_flag() { return g_cancel; }
int cancel_signal() { return g_signal.load(std::memory_order_relaxed); }
void request_cancel() { g_cancel.store(true, std::memory_order_release); }
void clear_cancel() {
  g_cancel.store(false, std::memory_order_release);
  g_signal.store(0, std::memory_order_relaxed);
}

// A Ctrl-C that comes meanwhile counts as the same interrupt.  A handler, maybe on another thread, sets the signal
// before the flag: where the exchange finds the signal changed, both are looked at again.
void resume_after_interrupt() {
  catch_stop_signals();
  int signal = 0;
  do {
    g_cancel.store(false);
    signal = g_signal.load();
    if (signal != 0 && signal != SIGINT) return g_cancel.store(true);
  } while (!g_signal.compare_exchange_weak(signal, 0));
}

}  // namespace syrinx
