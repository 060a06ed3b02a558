// Samples as computations may have them.
#pragma once

#include <algorithm>
#include <cmath>

namespace syrinx {

// Full scale is 1; 60 dB above it nothing is sound any more.  A greater sample would drown, and its power overflow,
// all that is heard beside it.
inline constexpr float kLoudestSample = 1000.0f;

// A sample that is not finite counts as silence.
inline float bounded_sample(float sample) {
  return std::isfinite(sample) ? std::clamp(sample, -kLoudestSample, kLoudestSample) : 0.0f;
}

}  // namespace syrinx
