// The speaker encoder's log-mel spectrum (spec qwen3-tts.md, section 5.4; the maker's mel_spectrogram): at 24 kHz,
// frames of 1024 samples every 256 under a periodic Hann window, magnitudes, Slaney's mel filters up to 12 kHz, natural
// logarithm.  The sound is mirrored by 384 samples at both ends, so a sound of n samples has floor(n / 256) frames.
#pragma once

#include <span>
#include <vector>

#include "audio/mel_bank.h"
#include "base/result.h"
#include "kernels/fft.h"
#include "tensor/view.h"

namespace syrinx::qwen_tts {

// Immutable; thread-safe.
class SpeakerFeatures {
 public:
  static constexpr size_t kSampleRate = 24000, kHopSamples = 256;
  static constexpr size_t kLeastSamples = 385;  // one more than are mirrored
  static constexpr size_t kFramesAtOnce = 16;   // a vector's worth of the transform

  // kUnsupported: another rate than the maker's.  kInvalidArgument: more mels than a bank takes.
  static Result<SpeakerFeatures> create(size_t mels, size_t sample_rate);

  size_t mels() const { return bank_.mels(); }
  static size_t frame_count(size_t samples) { return samples / kHopSamples; }
  size_t scratch_size() const;  // floats

  // Frames [first, first + n) of the sound into out [n, mels].  The sound has kLeastSamples or more; samples that are
  // not finite count as silence.  Allocates nothing.
  void compute(std::span<const float> samples, size_t first, std::span<float> scratch, View<float, 2> out) const;

 private:
  SpeakerFeatures(kernels::RealFft fft, MelBank bank);

  kernels::RealFft fft_;
  MelBank bank_;
  std::vector<float> window_;  // [1024]
};

}  // namespace syrinx::qwen_tts
