// Whether a client's parts, each worth some seconds, come at the pace of the clock.  One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace syrinx::server {

class Pace {
 public:
  // Seconds that may come at once, as after a stall of the network or the machine.
  explicit Pace(double most_ahead_s) : most_ahead_s_(most_ahead_s) {}

  // False: it would be further ahead of the clock, counted from the first part on, and nothing is taken.  After a long
  // pause the credit is no more than that.
  bool take(double seconds, int64_t now_ns) {
    const double passed_s = this->passed_s(now_ns);
    taken_s_ = std::max(taken_s_, passed_s - most_ahead_s_);
    if (taken_s_ + seconds - passed_s > most_ahead_s_) return false;
    taken_s_ += seconds;
    return true;
  }

  // For what is taken first and priced then: charge() takes it however far ahead it is, and wait_s() is how long
  // nothing more should be taken until it is no further ahead than may come at once; 0: something may.
  void charge(double seconds, int64_t now_ns) {
    taken_s_ = std::max(taken_s_, passed_s(now_ns) - most_ahead_s_) + seconds;
  }
  double wait_s(int64_t now_ns) { return std::max(0.0, taken_s_ - passed_s(now_ns) - most_ahead_s_); }

 private:
  double passed_s(int64_t now_ns) {
    if (!first_ns_) first_ns_ = now_ns;
    return static_cast<double>(now_ns - *first_ns_) * 1e-9;
  }

  const double most_ahead_s_;
  double taken_s_ = 0;
  std::optional<int64_t> first_ns_;
};

}  // namespace syrinx::server
