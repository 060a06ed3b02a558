// Another sampling rate for a sound that comes in blocks: the filter of resample.h, whose result it gives bit for bit
// however the sound is cut.
//
// A sample of the result is there once the filter has seen what it needs: about ten periods of the lower rate later
// (0.63 ms at 16 kHz), and the rest at the end.  One thread.  Errors: create() alone, kLimitExceeded for a rate outside
// resample.h's bounds.  Memory: the filter (up to 35 MB for rates without a common divisor), its reach, and a block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace syrinx {

inline constexpr int kMinResampleHz = 1000, kMaxResampleHz = 384000;

class StreamResampler {
 public:
  static Result<StreamResampler> create(int from_hz, int to_hz);

  // Appends to `out` what has become known.
  void push(std::span<const float> block, std::vector<float>& out);
  // The end of the sound: appends the rest.  Then only reset() may follow.
  void finish(std::vector<float>& out);
  void reset();

 private:
  StreamResampler(size_t up, size_t down) : up_(up), down_(down) {}
  float sample() const;
  void step();
  void forget();

  size_t up_, down_;
  size_t reach_ = 0;         // samples of the sound before and after the one below that the filter reads
  std::vector<float> taps_;  // [up, 2 * reach + 1], in the sound's order; empty for equal rates

  std::vector<float> kept_;  // of the sound, from sample first_ on
  uint64_t first_ = 0;
  uint64_t at_ = 0;   // the sample below the next of the result
  size_t phase_ = 0;  // how far beyond it that lies, in 1 / up of a sample
};

}  // namespace syrinx
