// Whether what somebody sends, each part of it worth some seconds, comes at the pace of the clock.  One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace syrinx::server {

class Pace {
 public:
  // How much may come at once: what a network or a machine that stood still brings then.
  explicit Pace(double most_ahead_s) : most_ahead_s_(most_ahead_s) {}

  // False: it would be further ahead of the clock, counted from the first part on, and nothing is taken.  Who has sent
  // little for long has no more than that to his credit.
  bool take(double seconds, int64_t now_ns) {
    if (!first_ns_) first_ns_ = now_ns;
    const double passed_s = static_cast<double>(now_ns - *first_ns_) * 1e-9;
    taken_s_ = std::max(taken_s_, passed_s - most_ahead_s_);
    if (taken_s_ + seconds - passed_s > most_ahead_s_) return false;
    taken_s_ += seconds;
    return true;
  }

 private:
  const double most_ahead_s_;
  double taken_s_ = 0;
  std::optional<int64_t> first_ns_;
};

}  // namespace syrinx::server
