#include "kernels/limits.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>

#include "kernels/cpu/limit_loops.h"
#include "kernels/dispatch.h"
#include "tensor/buffer.h"

namespace syrinx::kernels {
namespace {

// Sink for the result of every loop, so that no compiler may leave the loop out.
std::atomic<float> sink;

template <class Work>
double seconds_of(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class Work>
double best_seconds(int runs, Work&& work) {
  double best = seconds_of(work);
  for (int i = 1; i < runs; ++i) best = std::min(best, seconds_of(work));
  return best;
}

Limit measure_peak(const PeakLoop& loop, ThreadTeam& team, const LimitOptions& options) {
  Limit limit;
  if (loop.run == nullptr) return limit;
  const auto once = [&](size_t iterations) { sink.store(loop.run(iterations), std::memory_order_relaxed); };
  // Doubles until a run is long enough for the clock, then scales to the length asked for.
  size_t iterations = 1024;
  double seconds = seconds_of([&] { once(iterations); });
  while (seconds < options.run_seconds / 8) {
    iterations *= 2;
    seconds = seconds_of([&] { once(iterations); });
  }
  iterations =
      std::max<size_t>(1, static_cast<size_t>(static_cast<double>(iterations) * options.run_seconds / seconds));
  const double giga = loop.operations * static_cast<double>(iterations) * 1e-9;
  limit.one_thread = giga / best_seconds(options.runs, [&] { once(iterations); });
  limit.all_threads = team.size() == 1 ? limit.one_thread : giga * team.size() / best_seconds(options.runs, [&] {
                                                              team.run([&](int) { once(iterations); });
                                                            });
  return limit;
}

void read_part(const Buffer<uint32_t>& data, Range range, size_t prefetch_bytes) {
  const uint32_t sum =
      read_all(data.data() + range.begin, (range.end - range.begin) * sizeof(uint32_t), prefetch_bytes);
  sink.store(static_cast<float>(sum), std::memory_order_relaxed);
}

void measure_reads(ThreadTeam& team, const LimitOptions& options, MachineLimits& limits) {
  constexpr size_t kPage = 4096 / sizeof(uint32_t);
  const size_t count = std::max<size_t>(1, options.read_bytes / 4096) * kPage;
  Buffer<uint32_t> data(count);
  prefer_huge_pages(data.data(), count * sizeof(uint32_t));
  // Each member writes its own share first, so that the pages exist and lie near it.
  team.run([&](int member) {
    const Range range = split_range(count, member, team.size(), kPage);
    for (size_t i = range.begin; i < range.end; ++i) data[i] = static_cast<uint32_t>(i);
  });
  const double giga = static_cast<double>(count) * sizeof(uint32_t) * 1e-9;
  const int runs = std::max(2, options.runs / 2);
  for (const size_t prefetch : {0, 512, 1024, 2048, 4096}) {
    const double rate = giga / best_seconds(runs, [&] { read_part(data, {0, count}, prefetch); });
    if (rate > limits.read_gb_per_s.one_thread) {
      limits.read_gb_per_s.one_thread = rate;
      limits.prefetch_bytes = prefetch;
    }
  }
  limits.read_gb_per_s.all_threads = limits.read_gb_per_s.one_thread;
  if (team.size() == 1) return;
  for (const size_t prefetch : {size_t{0}, limits.prefetch_bytes}) {
    const double seconds = best_seconds(options.runs, [&] {
      team.run([&](int member) { read_part(data, split_range(count, member, team.size(), kPage), prefetch); });
    });
    limits.read_gb_per_s.all_threads = std::max(limits.read_gb_per_s.all_threads, giga / seconds);
  }
}

}  // namespace

MachineLimits measure_limits(ThreadTeam& team, const LimitOptions& options) {
  MachineLimits limits;
  limits.threads = team.size();
  limits.target = chosen_target_name();
  limits.f32_gop_per_s = measure_peak(f32_peak(), team, options);
  limits.bf16_gop_per_s = measure_peak(bf16_peak(), team, options);
  limits.int8_dot_gop_per_s = measure_peak(int8_dot_peak(), team, options);
  limits.int8_exact_gop_per_s = measure_peak(int8_exact_peak(), team, options);
  limits.int8_7bit_gop_per_s = measure_peak(int8_7bit_peak(), team, options);
  measure_reads(team, options, limits);
  return limits;
}

}  // namespace syrinx::kernels
