#include "base/signals.h"

#include <signal.h>

#include "base/watched_pages.h"

namespace syrinx {
namespace {

// Lock-free atomics are what a handler may touch.
std::atomic<bool> g_cancel{false};
std::atomic<int> g_signal{0};
std::atomic<bool> g_reload{false};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void handle(int signal) {
  g_signal.store(signal, std::memory_order_relaxed);
  g_cancel.store(true, std::memory_order_release);
}

void handle_reload(int /*signal*/) { g_reload.store(true, std::memory_order_release); }

}  // namespace

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESETHAND;  // the second one takes the default action; no SA_RESTART (see the header)
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigemptyset(&ignore.sa_mask);
  sigaction(SIGPIPE, &ignore, nullptr);
  sigaction(SIGXFSZ, &ignore, nullptr);
  catch_missing_pages();
}

void catch_reload() {
  struct sigaction action {};
  action.sa_handler = handle_reload;
  action.sa_flags = SA_RESTART;
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

}  // namespace syrinx
