// Samples as floats in [-1, 1] and as 16-bit integers.  One float step of 1/32768 is one integer step, so that integers
// survive the way to float and back unchanged.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>

#include "base/rng.h"

namespace syrinx {

static_assert(std::endian::native == std::endian::little, "sound leaves in little-endian order");

// f32 to s16, stream by stream: rounds to nearest (halves to even), clips, and counts what it clipped.
class PcmQuantizer {
 public:
  PcmQuantizer() = default;
  // Adds triangular noise of two steps' width before rounding: two uniform draws of Rng(seed) for each sample.
  explicit PcmQuantizer(uint64_t dither_seed) : dither_(dither_seed) {}

  // in.size() == out.size().  The result does not depend on how a stream is cut into calls.
  void convert(std::span<const float> in, std::span<int16_t> out);
  uint64_t clipped_samples() const { return clipped_; }  // beyond [-1, 1], or not a number (those become 0)

 private:
  std::optional<Rng> dither_;
  uint64_t clipped_ = 0;
};

void pcm_to_float(std::span<const int16_t> in, std::span<float> out);  // in.size() == out.size()

}  // namespace syrinx
