// How long an engine's steps took, and how many were late: noted by a thread after each of its steps, and read at any
// time for the metrics.  A step here is one turn whose work is due, without what it waited: a frame of every stream
// that asked, a chunk of each, a piece of text.  No lock, and nothing is allocated.  Any thread.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace syrinx {

// Steps that serve several streams at once: by them, how their length depends on how many they serve.
struct RoundFigures {
  uint64_t rounds = 0;
  double members = 0;         // sum of the streams that a round served
  double squares = 0;         // of their squares
  double took_s = 0;          // of the rounds' lengths
  double took_members_s = 0;  // of the lengths times the streams

  RoundFigures since(const RoundFigures& earlier) const {
    return {.rounds = rounds - earlier.rounds,
            .members = members - earlier.members,
            .squares = squares - earlier.squares,
            .took_s = took_s - earlier.took_s,
            .took_members_s = took_members_s - earlier.took_members_s};
  }
};

struct StepFigures {
  // Upper bounds of the buckets in nanoseconds, the closest ones around the 80 ms of a frame; the last has none.
  static constexpr std::array<int64_t, 14> kBoundsNs = {
      1'000'000,  2'000'000,   5'000'000,   10'000'000,  20'000'000,    40'000'000,    60'000'000,
      80'000'000, 100'000'000, 150'000'000, 300'000'000, 1'000'000'000, 3'000'000'000, 10'000'000'000};

  std::array<uint64_t, kBoundsNs.size() + 1> buckets{};
  int64_t took_ns = 0;     // all together
  uint64_t late = 0;       // of them: those whose audio or words were not there in time
  int64_t other_ns = 0;    // of turns without a due time, all together
  int64_t longest_ns = 0;  // the longest time for which a turn let nothing else run, of all turns
  RoundFigures rounds = {};

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
    more.other_ns -= earlier.other_ns;
    more.rounds = rounds.since(earlier.rounds);
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
  // A turn without a due time.
  void note_other(int64_t took_ns) { other_ns_.fetch_add(took_ns, std::memory_order_relaxed); }
  // A part of a turn, in which nothing else ran.
  void note_part(int64_t took_ns) {
    int64_t longest_ns = longest_ns_.load(std::memory_order_relaxed);
    while (took_ns > longest_ns && !longest_ns_.compare_exchange_weak(longest_ns, took_ns, std::memory_order_relaxed)) {
    }
  }
  // A step that served so many streams; one thread at a time.
  void note_round(size_t members, int64_t took_ns) {
    const auto own = static_cast<uint64_t>(members),
               took_us = static_cast<uint64_t>(std::max<int64_t>(took_ns, 0)) / 1000;
    rounds_.fetch_add(1, std::memory_order_relaxed);
    members_.fetch_add(own, std::memory_order_relaxed);
    squares_.fetch_add(own * own, std::memory_order_relaxed);
    round_us_.fetch_add(took_us, std::memory_order_relaxed);
    round_members_us_.fetch_add(took_us * own, std::memory_order_relaxed);
  }

  int64_t longest_ns() const { return longest_ns_.load(std::memory_order_relaxed); }
  StepFigures read() const {
    StepFigures figures;
    for (size_t i = 0; i < buckets_.size(); ++i) figures.buckets[i] = buckets_[i].load(std::memory_order_relaxed);
    figures.took_ns = took_ns_.load(std::memory_order_relaxed);
    figures.late = late_.load(std::memory_order_relaxed);
    figures.other_ns = other_ns_.load(std::memory_order_relaxed);
    figures.longest_ns = longest_ns();
    figures.rounds = {.rounds = rounds_.load(std::memory_order_relaxed),
                      .members = static_cast<double>(members_.load(std::memory_order_relaxed)),
                      .squares = static_cast<double>(squares_.load(std::memory_order_relaxed)),
                      .took_s = static_cast<double>(round_us_.load(std::memory_order_relaxed)) * 1e-6,
                      .took_members_s = static_cast<double>(round_members_us_.load(std::memory_order_relaxed)) * 1e-6};
    return figures;
  }

 private:
  std::array<std::atomic<uint64_t>, StepFigures::kBoundsNs.size() + 1> buckets_{};
  std::atomic<int64_t> took_ns_{0}, other_ns_{0}, longest_ns_{0};
  std::atomic<uint64_t> late_{0};
  std::atomic<uint64_t> rounds_{0}, members_{0}, squares_{0}, round_us_{0}, round_members_us_{0};
};

}  // namespace syrinx
