// Silero VAD v6.2: the probability that a window of 512 samples (32 ms at 16 kHz) holds speech (spec silero-vad.md,
// section 3).  A window goes through a short-time Fourier transform of four frames, four convolutions, an LSTM cell and
// one output:
//
//   magnitude [129, 4] -> 128 x 4 -> 64 x 2 -> 64 -> 128 -> LSTM 128 -> probability
//
// Whatever does not depend on the window before is computed for up to kWindowsAtOnce windows in one pass, as one matrix
// product a layer; only the recurrent product goes in order.  The sums have one order, so neither the number of windows
// in a call nor the cutting of the sound changes a bit.  One thread; a step allocates nothing.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/pack.h"
#include "models/silero/container.h"
#include "tensor/buffer.h"

namespace syrinx::silero {

inline constexpr int kSampleRateHz = 16000;
inline constexpr size_t kWindowSamples = 512, kContextSamples = 64;
inline constexpr size_t kWindowsAtOnce = 12;

// Context around the 512 samples.  kCarried, the maker's: 64 samples of the window before on the left, 64 mirrored on
// the right.  kMirrored, whisper.cpp's: 64 mirrored on both sides; single windows move by up to 0.23.
enum class Framing { kCarried, kMirrored };

// State of a stream.  A new or reset one is at the beginning of a recording; reset it after a gap in the audio, not at
// the end of an utterance.
struct VadState {
  explicit VadState(Framing the_framing = Framing::kCarried) : framing(the_framing) {}
  void reset() { *this = VadState(framing); }

  Framing framing;
  std::array<float, kContextSamples> context{};  // the last samples of the window before
  std::array<float, kHidden> hidden{}, cell{};   // of the LSTM
};

// Scratch of a step, for one thread.  W is kWindowsAtOnce.
struct VadScratch {
  VadScratch();

  Buffer<float> framed;     // [W, 640]
  Buffer<float> spectrum;   // [W, 4, 288]: real parts, imaginary parts, padding
  Buffer<float> magnitude;  // [5 W + 1, 132]: four frames a window, a row of zeros between windows and at both ends
  Buffer<float> encoded0;   // [5 W + 1, 128] likewise
  Buffer<float> encoded1;   // [W, 2, 64]
  Buffer<float> encoded2;   // [W, 64]
  Buffer<float> encoded3;   // [W, 128]
  Buffer<float> gates;      // [W, 512]: what the window adds to the gates
  Buffer<float> sums;       // [512]: the gates
  Buffer<std::byte> gemv;
};

// Immutable weights; shared by any number of threads, each with its own state and scratch.
class SileroVad {
 public:
  // Errors: those of MappedFile::open() and parse_container().
  static Result<std::shared_ptr<const SileroVad>> load(const std::string& path);
  explicit SileroVad(const Tensors& tensors);

  // samples [windows * 512], about -1 to 1 -> probabilities [windows].  What is not finite counts as silence.
  void step(std::span<const float> samples, VadState& state, VadScratch& scratch, std::span<float> probabilities) const;

 private:
  void pass(const float* samples, size_t windows, VadState& state, VadScratch& scratch, float* probabilities) const;
  void encode(size_t windows, VadScratch& scratch) const;
  float decode(const float* window_gates, VadState& state, VadScratch& scratch) const;

  kernels::OwnedMatrix basis_;                             // 256 -> 258
  std::array<kernels::OwnedMatrix, kEncoderLayers> conv_;  // without the taps that meet nothing but padding
  kernels::OwnedMatrix input_, recurrent_;                 // 128 -> 512; both biases are in the first
  std::vector<float> output_weight_;
  float output_bias_ = 0;
};

// The probabilities of a whole recording, ceil(samples / 512) of them; the last window is filled up with silence.
// `is_wanted` is asked before each minute of sound, on this thread: none at all where it says no.  Empty: always.
// `between` is called after each few seconds of sound, which take some milliseconds.  Empty: never.  `gain`: by which
// the samples are multiplied before, kept within -1 and 1 if it is not 1.
std::vector<float> speech_probabilities(const SileroVad& vad, std::span<const float> samples,
                                        Framing framing = Framing::kCarried,
                                        const std::function<bool()>& is_wanted = {},
                                        const std::function<void()>& between = {}, float gain = 1);

}  // namespace syrinx::silero
