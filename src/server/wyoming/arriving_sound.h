// Sound on its way from a client's connection to the slot that hears it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "audio/wav.h"
#include "base/result.h"
#include "server/waker.h"

namespace syrinx::server::wyoming {

class ArrivingSound {
 public:
  static constexpr size_t kMaxWaitingBytes = size_t{1} << 20;  // and one append more; behind that there is no room

  ArrivingSound(const PcmFormat& format, double max_s) : format_(format), max_s_(max_s) {}
  const PcmFormat& format() const { return format_; }

  // Of the connection; one thread, which never waits.
  // Samples of all channels; nothing is taken with kInvalidArgument: the last one is not whole, or kLimitExceeded: the
  // sound would be longer than max_s.
  Status append(const std::string& bytes);
  void finish();          // that is all of it
  bool has_room() const;  // else the next append must wait for it
  // What is called, from the slot's thread, when there may be room again, and once until has_room().  When this
  // returns, what was set before is not being called.
  void on_room(std::function<void()> wake) { waker_.set(std::move(wake)); }

  void give_up();  // nobody wants it any more; any thread

  // Of the slot: waits for sound and replaces `bytes`.  False: there will be no more.
  bool take(std::string& bytes);

 private:
  const PcmFormat format_;
  const double max_s_;
  uint64_t frames_ = 0;  // so far; of the connection's thread
  std::atomic<size_t> waiting_{0};
  mutable Waker waker_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string bytes_;  // by mutex_, as what follows
  bool ended_ = false;
};

}  // namespace syrinx::server::wyoming
