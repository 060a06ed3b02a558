// Sound on its way from a client's connection to the slot that hears it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "audio/wav.h"
#include "base/clock.h"
#include "base/result.h"
#include "server/host/waiting_sound.h"
#include "server/http/waker.h"

namespace syrinx::server::wyoming {

class ArrivingSound {
 public:
  static constexpr size_t kMaxWaitingBytes = size_t{1} << 20;  // and one append more; behind that there is no room
  // Whole samples, and when the last of them came.
  struct Part {
    std::string bytes = {};
    int64_t came_ns = 0;
  };

  // The clock must outlive it.
  ArrivingSound(const PcmFormat& format, double max_s, const Clock& clock = system_clock())
      : format_(format), max_s_(max_s), clock_(clock) {}
  const PcmFormat& format() const { return format_; }
  // At kRecognitionRateHz, as many as so many of the sound's frames are worth.
  uint64_t samples_in(uint64_t frames) const {
    return frames * kRecognitionRateHz / static_cast<uint64_t>(format_.rate_hz);
  }

  // For the connection; one thread, which never waits.
  // Samples of all channels; nothing is taken with kInvalidArgument: the last one is not whole, or kLimitExceeded: the
  // sound would be longer than max_s.
  Status append(const std::string& bytes);
  void finish();          // that is all of it
  bool has_room() const;  // else the next append must wait for it
  // `wake` is called, from the slot's thread, when there is room again where there was none.  When this returns, the
  // previous one is not running.
  void on_room(std::function<void()> wake) { waker_.set(std::move(wake)); }

  void give_up();  // nobody wants it any more, and no more of it counts as waiting; any thread

  // For the slot.
  // From here on its waiting samples count there, until the slot takes them off; before the first take().
  void count_by(std::shared_ptr<WaitingSound> counted);
  // Waits for sound and replaces `part`, of a client's pieces one at least.  False: there will be no more.
  bool take(Part& part);
  int64_t ended_ns();  // when it was finished or given up

 private:
  void end();  // by mutex_

  const PcmFormat format_;
  const double max_s_;
  const Clock& clock_;
  std::atomic<size_t> waiting_{0};
  mutable Waker waker_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t frames_ = 0;  // so far; by mutex_, as what follows
  std::deque<Part> parts_;
  std::shared_ptr<WaitingSound> counted_;
  bool ended_ = false;
  int64_t ended_ns_ = 0;
};

}  // namespace syrinx::server::wyoming
