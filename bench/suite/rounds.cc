#include "bench/suite/rounds.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "base/clock.h"

namespace syrinx::bench {
namespace {

// "123456 7890 12": nanoseconds on a core, nanoseconds of waiting for one, turns.  Below zero: it cannot be read.
double waited_ms(int file) {
  char text[64];
  const ssize_t size = ::pread(file, text, sizeof text, 0);
  if (size <= 0) return -1;
  const char* const begin = text;
  const char* const end = begin + size;
  const char* const second = std::find(begin, end, ' ');
  int64_t waited_ns = 0;
  if (second == end || std::from_chars(second + 1, end, waited_ns).ec != std::errc()) return -1;
  return static_cast<double>(waited_ns) * 1e-6;
}

// The compiler may neither foresee a step nor do the steps of a whole round once, before its stages.
void count(size_t steps) {
  uint64_t value = steps;
  for (size_t i = 0; i < steps; ++i) {
    value = value * 6364136223846793005U + 1442695040888963407U;
    asm volatile("" : "+r"(value));
  }
}

}  // namespace

void Times::sort() { std::sort(ms_.begin(), ms_.end()); }

double Times::at(double share) const {
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(ms_.size())));
  return ms_[std::clamp<size_t>(rank, 1, ms_.size()) - 1];
}

CoreWaits::CoreWaits(ThreadTeam& team)
    : team_(team), files_(static_cast<size_t>(team.size())), total_ms_(files_.size()), waited_ms_(files_.size()) {
  // Opened by each member itself: the name means whoever opens it.
  team_.run([this](int member) {
    files_[static_cast<size_t>(member)] = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  });
  since_last();
}

CoreWaits::~CoreWaits() {
  for (const int file : files_)
    if (file >= 0) ::close(file);
}

const std::vector<double>& CoreWaits::since_last() {
  // Each reads its own, since a thread's count moves when it gets a core.
  team_.run([this](int member) {
    const auto i = static_cast<size_t>(member);
    const double now_ms = waited_ms(files_[i]);
    waited_ms_[i] = now_ms - total_ms_[i];
    total_ms_[i] = now_ms;
  });
  known_ = std::all_of(total_ms_.begin(), total_ms_.end(), [](double ms) { return ms >= 0; });
  return waited_ms_;
}

void Rounds::add(double ms, CoreWaits& waits) {
  all.add(ms);
  const std::vector<double>& waited = waits.since_last();
  known = waits.known();
  if (!known) return;
  const bool caller = waited[0] >= kLossMs;
  const bool others = std::any_of(waited.begin() + 1, waited.end(), [](double each) { return each >= kLossMs; });
  if (caller) ++caller_lost;
  if (!caller && others) ++others_lost;
  if (!caller && !others) undisturbed.add(ms);
}

Rounds empty_rounds(ThreadTeam& team, double round_ms, size_t rounds) {
  constexpr double kStageMs = 0.1;
  const auto stages = static_cast<size_t>(std::max(1.0, std::round(round_ms / kStageMs)));
  size_t steps = 1024;
  const auto round = [&] {
    const Stopwatch watch;
    team.run([&](int) {
      for (size_t stage = 0; stage < stages; ++stage) {
        count(steps);
        team.barrier();
      }
    });
    return watch.elapsed_ms();
  };
  // As many steps as fill the time of a round that nobody disturbs: the fastest of many tells.
  constexpr int kLeastTries = 12;
  double steps_a_ms = 0;
  for (int tries = 0; tries < kLeastTries || static_cast<double>(steps) < steps_a_ms * round_ms / 2; ++tries) {
    if (static_cast<double>(steps) < steps_a_ms * round_ms / 2) steps *= 2;
    steps_a_ms = std::max(steps_a_ms, static_cast<double>(steps) / round());
  }
  steps = static_cast<size_t>(steps_a_ms * round_ms);
  Rounds result;
  CoreWaits waits(team);
  for (size_t i = 0; i < rounds; ++i) {
    waits.since_last();
    result.add(round(), waits);
  }
  result.sort();
  return result;
}

}  // namespace syrinx::bench
