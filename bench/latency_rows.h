// Rows of times: p50, p99, p99.9 in microseconds, then p99 and p99.9 as multiples of p50.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>

namespace syrinx::bench {

using SteadyClock = std::chrono::steady_clock;

inline double microseconds(SteadyClock::time_point from, SteadyClock::time_point to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

template <class Body>
double timed(const Body& body) {
  const SteadyClock::time_point from = SteadyClock::now();
  body();
  return microseconds(from, SteadyClock::now());
}

// The smallest value that so great a share of them, sorted and at least one, does not exceed.
inline double quantile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

inline void print_row(const char* name, std::vector<double> us) {
  if (us.empty()) return;
  std::sort(us.begin(), us.end());
  const double p50 = quantile(us, 0.5), p99 = quantile(us, 0.99), p999 = quantile(us, 0.999);
  std::printf("  %-46s %9.1f %9.1f %9.1f   %5.2f %5.2f   n %zu\n", name, p50, p99, p999, p99 / p50, p999 / p50,
              us.size());
}

// Times the program with a principle and without it, in turns, so that both meet the same machine.
inline void compare(const char* with, const std::function<void()>& one, const char* without,
                    const std::function<void()>& other, size_t rounds) {
  std::vector<double> a, b;
  for (size_t i = 0; i < rounds; ++i) {
    a.push_back(timed(one));
    b.push_back(timed(other));
  }
  print_row(with, a);
  print_row(without, b);
}

}  // namespace syrinx::bench
