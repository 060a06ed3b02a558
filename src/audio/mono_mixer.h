// Where the decoders of sound put their blocks: the mean of the channels, within the limits, goes on to a sink.  Where
// the channels cancel each other, as of a cable with two wires exchanged, the loudest one goes on in their place: from
// a window of 50 ms in which they do, until they have clearly not done so for a second, or the mean is by far louder. A
// change takes 8 ms.
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
  // Given, this is told how many channels there are, before begin().
  std::function<void(int count)> channels = {};
  // Given, this is called now and then while blocks are read that are not yet given on: with their samples.
  std::function<Status(uint64_t samples)> looked = {};
  // Given, a recording that is cut off or damaged on its way is read as far as it is whole, and this is told so in a
  // sentence, behind its last block.  Not given, that is kDataLoss.
  std::function<void(const std::string& sentence)> warn = {};
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
  // Silence in all channels, at the cost of one.  Errors: those of add().
  Status silence(uint64_t frames);
  // Blocks that were read to learn something of them, and come again.  Errors: the sink's.
  Status look(std::span<const float> block);
  // The end of the sound, or of what is whole of it: samples of several channels that wait for more go on.
  Status finish();

  // Multiplies the samples that are added from now on.
  void scale_by(float factor) { scale_ = factor; }
  // Whether what is whole of a damaged recording is wanted.
  bool takes_parts() const { return sink_.warn != nullptr; }
  bool has_refused() const { return refused_; }  // an error was ours, or the sink's
  uint64_t frames() const { return frames_; }    // so far
  double seconds() const { return rate_hz_ == 0 ? 0 : static_cast<double>(frames_) / rate_hz_; }

 private:
  Status begin_sink(int channels, int rate_hz, std::optional<uint64_t> frames);
  Status count(uint64_t frames);
  Status add_all(std::span<const float> block);
  Status add_silence(uint64_t frames);
  Status refused(Status status);
  bool is_longer(uint64_t frames) const;
  Status mix(std::span<const float> window, std::span<float> out);
  Status mix_windows(size_t window_frames);
  void choose(double mixed, double all);
  float sample(std::optional<size_t> channel, std::span<const float> frame) const;

  const SoundLimits& limits_;
  const std::string& name_;
  const SoundSink& sink_;
  size_t channels_ = 0;
  int rate_hz_ = 0;
  uint64_t frames_ = 0;
  float scale_ = 1;
  bool refused_ = false;
  std::vector<float> waiting_;     // less than a window of several channels
  std::vector<double> powers_;     // of the channels in a window
  double loudest_ = 0;             // window so far, by the sum of its powers
  std::optional<size_t> instead_;  // of the mean, this channel; the one that is asked for
  int apart_windows_ = 0;          // in a row, in which the channels were clearly not opposite
  bool has_mixed_ = false;
  std::vector<float> mono_;
};

}  // namespace syrinx
