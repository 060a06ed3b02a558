// How long an engine's steps took, and how many were late: noted by whoever has just made one, behind it, and read at
// any time for the metrics.  A step here is what one turn makes whose work is due: a frame of every stream that asked,
// a chunk of each, a piece of text.  No lock, and nothing is allocated.  Any thread.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace syrinx {

struct StepFigures {
  // Upper bounds of the buckets in nanoseconds, the closest ones around the 80 ms of a frame; the last has none.
  static constexpr std::array<int64_t, 14> kBoundsNs = {
      1'000'000,  2'000'000,   5'000'000,   10'000'000,  20'000'000,    40'000'000,    60'000'000,
      80'000'000, 100'000'000, 150'000'000, 300'000'000, 1'000'000'000, 3'000'000'000, 10'000'000'000};

  std::array<uint64_t, kBoundsNs.size() + 1> buckets{};
  int64_t took_ns = 0;  // all together
  uint64_t late = 0;    // of them: somebody's sound or words were not there in time

  uint64_t count() const {
    uint64_t all = 0;
    for (const uint64_t each : buckets) all += each;
    return all;
  }
  StepFigures since(const StepFigures& earlier) const {
    StepFigures more = *this;
    for (size_t i = 0; i < buckets.size(); ++i) more.buckets[i] -= earlier.buckets[i];
    more.took_ns -= earlier.took_ns;
    more.late -= earlier.late;
    return more;
  }
};

class StepCounts {
 public:
  void note(int64_t took_ns, bool late) {
    constexpr auto& kBounds = StepFigures::kBoundsNs;
    const auto bucket =
        static_cast<size_t>(std::lower_bound(kBounds.begin(), kBounds.end(), took_ns) - kBounds.begin());
    buckets_[bucket].fetch_add(1, std::memory_order_relaxed);
    took_ns_.fetch_add(took_ns, std::memory_order_relaxed);
    if (late) late_.fetch_add(1, std::memory_order_relaxed);
  }

  StepFigures read() const {
    StepFigures figures;
    for (size_t i = 0; i < buckets_.size(); ++i) figures.buckets[i] = buckets_[i].load(std::memory_order_relaxed);
    figures.took_ns = took_ns_.load(std::memory_order_relaxed);
    figures.late = late_.load(std::memory_order_relaxed);
    return figures;
  }

 private:
  std::array<std::atomic<uint64_t>, StepFigures::kBoundsNs.size() + 1> buckets_{};
  std::atomic<int64_t> took_ns_{0};
  std::atomic<uint64_t> late_{0};
};

}  // namespace syrinx
