// One channel of sound from the microphone, through PortAudio (sound_system.h).  A machine without one is an ordinary
// answer: kUnavailable with a sentence.  Nothing is ever printed, whatever the sound system would like to say.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace syrinx {

struct CaptureOptions {
  int rate_hz = 16000;        // wanted; a device that cannot is opened at its own
  double queue_seconds = 30;  // what read() may lag behind the microphone
  double stall_ms = 3000;     // a device that gives nothing for so long is taken for gone
  std::string device = {};    // part of a device's name; empty: the system's default input
};

// One at a time in a process.  All calls from one thread; the sound system brings samples in a thread of its own.
class Capture {
 public:
  // Hears from here on.
  static Result<std::unique_ptr<Capture>> open(const CaptureOptions& options);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // Waits for sound and takes what is there, at least one sample, at most all of `samples`; how many.  kCancelled once
  // `cancel` is true, kIo when the device has stopped giving sound.
  Result<size_t> read(std::span<float> samples, const std::atomic<bool>& cancel);

  int rate_hz() const;
  const std::string& device() const;  // its name
  uint64_t lost() const;              // samples that came while the queue was full
  double waiting_seconds() const;     // of sound that read() has not taken yet

 private:
  struct Impl;
  explicit Capture(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace syrinx
