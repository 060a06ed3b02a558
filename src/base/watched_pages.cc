#include "base/watched_pages.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

namespace syrinx {
namespace {

// State that a signal handler may touch: lock-free atomics, and fields that do not change behind catch_missing_pages().
struct Slot {
  std::atomic<bool> is_taken{false}, was_missing{false};
  std::atomic<std::byte*> first{nullptr};
  std::atomic<size_t> size{0};
};
static_assert(std::atomic<std::byte*>::is_always_lock_free && std::atomic<size_t>::is_always_lock_free);

Slot g_slots[WatchedPages::kMost];
struct sigaction g_before {};
size_t g_page_bytes = 0;

// All of the file behind the page is gone as well.
bool put_zeros(Slot& slot, uintptr_t address) {
  std::byte* const first = slot.first.load();
  const size_t size = slot.size.load(), at = address - reinterpret_cast<uintptr_t>(first);
  if (first == nullptr || at >= size || slot.first.load() != first) return false;  // another thread's may change
  const size_t page = at / g_page_bytes * g_page_bytes;
  if (::mmap(first + page, size - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
    return false;
  slot.was_missing.store(true, std::memory_order_release);
  return true;
}

void handle(int signal, siginfo_t* info, void* /*context*/) {
  const int error = errno;
  const bool is_sent = info->si_code <= 0;  // by kill() or raise(): no page is gone, and no read comes again
  for (Slot& slot : g_slots) {
    if (is_sent || !put_zeros(slot, reinterpret_cast<uintptr_t>(info->si_addr))) continue;
    errno = error;
    return;
  }
  ::sigaction(signal, &g_before, nullptr);  // the same read comes again
  if (is_sent) ::raise(signal);             // once this has returned
}

}  // namespace

void catch_missing_pages() {
  if (g_page_bytes != 0) return;
  g_page_bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction action {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &g_before);
}

WatchedPages::WatchedPages(std::span<const std::byte> mapped) {
  for (size_t i = 0; i < kMost && !mapped.empty(); ++i) {
    if (g_slots[i].is_taken.exchange(true, std::memory_order_acq_rel)) continue;
    slot_ = i;
    g_slots[i].was_missing.store(false, std::memory_order_relaxed);
    g_slots[i].first.store(const_cast<std::byte*>(mapped.data()));
    g_slots[i].size.store(mapped.size());  // 0 until now
    return;
  }
}

WatchedPages::~WatchedPages() {
  if (!slot_) return;
  g_slots[*slot_].size.store(0);
  g_slots[*slot_].first.store(nullptr);
  g_slots[*slot_].is_taken.store(false, std::memory_order_release);
}

Status WatchedPages::check(const std::string& name) const {
  if (!slot_ || !g_slots[*slot_].was_missing.load(std::memory_order_acquire)) return {};
  return became_shorter(name);
}

Status WatchedPages::became_shorter(const std::string& name) {
  return fail(Code::kDataLoss,
              "'{}' became shorter while it was read, or could not be read; try again when no program writes to it",
              name);
}

}  // namespace syrinx
