// Log-mel features as the maker's preprocessor computes them in evaluation (spec transducer-asr.md, section 2; the
// maker's parts/preprocessing/features.py): pre-emphasis, windows centred at multiples of the hop with zeros outside of
// the sound, power spectrum, mel bank, logarithm, and per mel a mean of 0 and a deviation of 1 where the model wants
// it.
//
// Frame t reads the window that begins FeatureConfig::before() samples before hop t, half of it, and one sample before.
// A recording of L samples has floor(L / hop) frames.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "audio/mel_bank.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "kernels/fft.h"
#include "models/transducer/weight_reader.h"
#include "tensor/buffer.h"
#include "tensor/view.h"

namespace syrinx::transducer {

// Immutable; thread-safe.
class Features {
 public:
  // The bank and the window that the checkpoint stores, else those of its configuration.  kUnsupported, kDataLoss.
  static Result<Features> make(WeightReader& reader, const FeatureConfig& config);

  const FeatureConfig& config() const { return config_; }
  size_t frames(size_t samples) const { return samples / config_.hop; }

  // One member's scratch.
  struct Scratch {
    explicit Scratch(const Features& features);
    Buffer<float> frames, re, im, power, fft;
  };
  // Scratch of compute(): grows to the longest recording and the largest team, and allocates nothing else.  One call at
  // a time, always of the same features.
  struct Room {
    std::vector<float> emphasised;
    std::vector<Scratch> members;
    std::vector<double> sums, squares;
  };
  // Rows [0, frames(samples.size())) of `mels`, normalised where the model wants it.
  void compute(std::span<const float> samples, View<float, 2> mels, ThreadTeam& team, Room& room) const;
  void compute(std::span<const float> samples, View<float, 2> mels, ThreadTeam& team) const {
    Room room;
    compute(samples, mels, team, room);
  }
  // Logarithms of so many frames, not normalised: frame t reads the window at emphasised[t hop].
  void log_mels(std::span<const float> emphasised, View<float, 2> mels, Scratch& scratch) const;

 private:
  Features(const FeatureConfig& config, std::vector<float> window, MelBank bank, kernels::RealFft fft);
  void normalise(View<float, 2> mels, Room& room) const;

  FeatureConfig config_;
  std::vector<float> window_;
  MelBank bank_;
  kernels::RealFft fft_;
};

// Features of a stream as it comes, not normalised: a frame is there once its last sample is.  Allocates nothing after
// the constructor; one thread.
class FeatureStream {
 public:
  explicit FeatureStream(std::shared_ptr<const Features> features);
  void reset();

  // Takes samples until they are used up or `mels` is full.
  struct Taken {
    size_t samples = 0, rows = 0;
  };
  Taken push(std::span<const float> samples, View<float, 2> mels);
  // The frames that only zeros behind the sound complete, at most `mels` has room for; call until it gives none.
  size_t finish(View<float, 2> mels);
  size_t frames() const { return frames_; }  // given since the beginning

 private:
  size_t rows(View<float, 2> mels, size_t at);

  std::shared_ptr<const Features> features_;
  Features::Scratch scratch_;
  Buffer<float> held_;  // emphasised samples from the next frame's window on
  size_t held_count_ = 0, samples_ = 0, frames_ = 0;
  float last_ = 0;
};

}  // namespace syrinx::transducer
