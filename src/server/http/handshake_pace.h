// How often an address may begin a TLS handshake, which costs the server more than its client.  One thread.
//
// As many at once as it may have connections, and afterwards one each time a place comes free: all of them within
// kRefill.  An early one waits, on a connection that counts, so at most kRefill; none is refused.
// Memory: an entry for each address that has begun one within kRefill, or twice as many.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>

namespace syrinx::server {

template <class Address>
class HandshakePace {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kRefill{4000};

  // At least one.
  explicit HandshakePace(size_t at_once)
      : interval_(std::chrono::nanoseconds(kRefill) / std::max<size_t>(at_once, 1)) {}

  // When one more of this address may begin, which is counted.  Throws std::bad_alloc, and nothing is counted then.
  Time next(const Address& address, Time now) {
    if (paid_.size() >= prune_at_) prune(now);
    Time& paid = paid_.try_emplace(address, now).first->second;
    paid = std::max(paid, now) + interval_;
    return std::max(now, paid - kRefill);
  }
  size_t addresses() const { return paid_.size(); }

 private:
  static constexpr size_t kLeast = 1024;

  void prune(Time now) {
    std::erase_if(paid_, [&](const auto& entry) { return entry.second <= now; });
    prune_at_ = std::max(kLeast, 2 * paid_.size());
  }

  const std::chrono::nanoseconds interval_;
  size_t prune_at_ = kLeast;
  std::map<Address, Time> paid_;  // when all that it has begun will have been made up for
};

}  // namespace syrinx::server
