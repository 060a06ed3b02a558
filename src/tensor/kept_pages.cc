#include "tensor/kept_pages.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace syrinx {
namespace {

constexpr size_t kPage = 4096, kSlice = size_t{2} << 20;
// Others may want the core: a slice takes 20 us of it, or a few milliseconds where its pages have been taken away.
constexpr std::chrono::microseconds kPause{100};

struct Runs {
  std::mutex mutex;
  std::vector<std::span<const std::byte>> all;
};

// Never destroyed: weights may live until the process ends.
Runs& runs() {
  static Runs* const made = new Runs;
  return *made;
}

void read_pages(std::span<const std::byte> bytes) {
  const volatile std::byte* const data = bytes.data();
  for (size_t at = 0; at < bytes.size(); at += kPage) static_cast<void>(data[at]);
}

}  // namespace

KeptPages::KeptPages(std::span<const std::byte> bytes) : bytes_(bytes) {
  if (bytes_.empty()) return;
  const std::lock_guard lock(runs().mutex);
  runs().all.push_back(bytes_);
}

KeptPages::KeptPages(KeptPages&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

KeptPages& KeptPages::operator=(KeptPages&& other) noexcept {
  if (this == &other) return *this;
  drop();
  bytes_ = std::exchange(other.bytes_, {});
  return *this;
}

KeptPages::~KeptPages() { drop(); }

void KeptPages::drop() {
  if (bytes_.empty()) return;
  const std::lock_guard lock(runs().mutex);
  const auto same = [this](std::span<const std::byte> run) {
    return run.data() == bytes_.data() && run.size() == bytes_.size();
  };
  runs().all.erase(std::ranges::find_if(runs().all, same));
}

// By the lock for a slice at a time.
PagesRead read_kept_pages(const std::atomic<bool>* stop) {
  PagesRead read;
  for (size_t run = 0, at = 0; stop == nullptr || !*stop;) {
    {
      const std::lock_guard lock(runs().mutex);
      if (run >= runs().all.size()) return read;
      const std::span<const std::byte> bytes = runs().all[run];
      if (at >= bytes.size()) {
        ++run;
        at = 0;
        continue;
      }
      const auto slice = bytes.subspan(at, std::min(kSlice, bytes.size() - at));
      const Stopwatch watch;
      read_pages(slice);
      read.worked_ms += watch.elapsed_ms();
      read.pages += (slice.size() + kPage - 1) / kPage;
      at += slice.size();
    }
    std::this_thread::sleep_for(kPause);
  }
  return read;
}

}  // namespace syrinx
