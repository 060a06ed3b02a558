#include "bench/suite/qwen_rests.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <span>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/signals.h"
#include "tensor/buffer.h"
#include "tensor/kept_pages.h"

namespace syrinx::bench {
namespace {

constexpr std::chrono::milliseconds kTick{20};  // how soon a signal ends a rest
constexpr double kBusyMs = 30, kKeepMs = 2000;

// Calls what it is given every kKeepMs.
Status rest(double seconds, const std::function<void()>& keep) {
  double kept_ms = 0;
  for (const Stopwatch watch; watch.elapsed_ms() < 1e3 * seconds;) {
    if (cancel_requested()) return fail(Code::kCancelled, "stopped while measuring; no figure is complete");
    std::this_thread::sleep_for(kTick);
    if (watch.elapsed_ms() - kept_ms < kKeepMs) continue;
    kept_ms = watch.elapsed_ms();
    keep();
  }
  return {};
}

void keep_cores_busy(ThreadTeam& team) {
  team.run([](int) {
    const Stopwatch watch;
    while (watch.elapsed_ms() < kBusyMs) continue;
  });
}

double read_ms(ThreadTeam& team, std::span<const uint64_t> numbers) {
  std::atomic<uint64_t> all{0};
  const Stopwatch watch;
  team.run([&](int member) {
    const Range own = split_range(numbers.size(), member, team.size(), 64);
    uint64_t sum = 0;
    for (size_t i = own.begin; i < own.end; ++i) sum += numbers[i];
    all.fetch_add(sum, std::memory_order_relaxed);
  });
  return all.load() == 0 ? 0 : watch.elapsed_ms();
}

rusage used() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage;
}

// The eighth number of the first line: user, nice, system, idle, iowait, irq, softirq, steal.
double stolen_ms() {
  std::ifstream file("/proc/stat");
  std::string name;
  double ticks = 0;
  file >> name;
  for (int n = 0; n < 8; ++n) file >> ticks;
  return file ? 1e3 * ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)) : 0;
}

}  // namespace

const char* rest_end_name(RestEnd end) {
  switch (end) {
    case RestEnd::kPlain: return "nothing";
    case RestEnd::kCoresBusy: return "cores busy";
    case RestEnd::kPagesRead: return "pages read";
    case RestEnd::kPagesKept: return "pages kept";
  }
  return "";
}

Result<std::vector<QwenRest>> measure_rests(ThreadTeam& team, size_t rests, double seconds, const NextFrame& frame) {
  Buffer<uint64_t> others(kRestReadBytes / sizeof(uint64_t));
  prefer_huge_pages(others.data(), kRestReadBytes);
  std::fill(others.begin(), others.end(), uint64_t{1});
  std::vector<QwenRest> found;
  for (size_t n = 0; n < rests; ++n) {
    QwenRest one;
    one.end = static_cast<RestEnd>(n % 4);
    SYRINX_TRY_VOID(rest(seconds, [&] {
      if (one.end == RestEnd::kPagesKept) read_kept_pages();
    }));
    const Stopwatch watch;
    if (one.end == RestEnd::kCoresBusy) keep_cores_busy(team);
    if (one.end == RestEnd::kPagesRead) read_kept_pages();
    one.end_ms = watch.elapsed_ms();
    const rusage before = used();
    const double stolen_before_ms = stolen_ms();
    SYRINX_TRY(const std::optional<QwenFrameTimes> made, frame());
    const rusage after = used();
    one.stolen_ms = stolen_ms() - stolen_before_ms;
    if (!made) break;
    one.frame = *made;
    one.minor_faults = after.ru_minflt - before.ru_minflt;
    one.major_faults = after.ru_majflt - before.ru_majflt;
    one.read_ms = read_ms(team, others.span());
    one.read_again_ms = read_ms(team, others.span());
    for (size_t next = 0; next < kRestNextFrames; ++next) {
      SYRINX_TRY(const std::optional<QwenFrameTimes> another, frame());
      if (another) one.next.add(another->sum());
    }
    found.push_back(std::move(one));
  }
  return found;
}

}  // namespace syrinx::bench
