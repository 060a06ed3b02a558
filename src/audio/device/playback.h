// Mono sound to the loudspeaker, through PortAudio (sound_system.h).  A machine without one is an ordinary
// answer: kUnavailable with a sentence.  Nothing is ever printed, whatever the sound system would like to say.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace syrinx {

struct PlaybackOptions {
  int rate_hz = 24000;
  double queue_seconds = 30;  // what push() may run ahead of the loudspeaker
  std::string device = {};    // part of a device's name; empty: the system's default output
};

// One at a time in a process.  All calls from one thread; the sound system takes samples from a thread of its own.
class Playback {
 public:
  static Result<std::unique_ptr<Playback>> open(const PlaybackOptions& options);
  ~Playback();  // stops at once; drain() first to hear the rest
  Playback(const Playback&) = delete;
  Playback& operator=(const Playback&) = delete;

  // Queues what fits, without waiting; returns how many samples were taken.
  size_t push(std::span<const float> samples);
  // Queues all, waiting for room.  kCancelled once `cancel` is true, kIo when the device has stopped taking sound.
  Status play(std::span<const float> samples, const std::atomic<bool>& cancel);
  // Waits until everything queued has been heard.  Errors as play().
  Status drain(const std::atomic<bool>& cancel);

  double queued_seconds() const;
  uint64_t gaps() const;  // times that the queue ran dry between the first sample and drain()

 private:
  struct Impl;
  explicit Playback(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace syrinx
