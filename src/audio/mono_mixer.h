// Where the decoders of sound put their blocks: the mean of the channels, within the limits, goes on to a sink.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "audio/sound_limits.h"
#include "base/result.h"

namespace syrinx {

// Takes a sound block by block: begin() once, then add() with one channel's samples, each any number of times.  An
// error of either ends the reading and is its result.
struct SoundSink {
  // `frames` is what the file announces; absent where it does not tell.
  std::function<Status(int rate_hz, std::optional<uint64_t> frames)> begin;
  std::function<Status(std::span<const float> samples)> add;
};

// Gives a sink all of a sound: a file, a pipe, a microphone.
using SoundSource = std::function<Status(const SoundSink&)>;

class MonoMixer {
 public:
  // All must outlive the mixer.
  MonoMixer(const SoundLimits& limits, const std::string& name, const SoundSink& sink)
      : limits_(limits), name_(name), sink_(sink) {}

  // Once, before the first block.  kLimitExceeded: a number of channels, a rate or a length outside the limits.
  Status begin(int channels, int rate_hz, std::optional<uint64_t> frames = {});
  // Interleaved samples [frames, channels].  kLimitExceeded: too long; kDataLoss: a sample that is not a number;
  // one that is finite is bounded (loudest_sample.h).
  Status add(std::span<const float> block);
  uint64_t frames() const { return frames_; }  // so far

 private:
  const SoundLimits& limits_;
  const std::string& name_;
  const SoundSink& sink_;
  size_t channels_ = 0;
  int rate_hz_ = 0;
  uint64_t frames_ = 0;
  std::vector<float> mono_;
};

}  // namespace syrinx
