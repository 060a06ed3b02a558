// The loudest sample of some sound, so that silence and what is no number are seen in a report.
#pragma once

#include <cmath>
#include <span>

namespace syrinx::bench {

// Raises `peak` to the largest size of the samples; once one is no number, NaN stays.
inline void note_peak(std::span<const float> samples, double& peak) {
  for (const float sample : samples) {
    if (std::isnan(peak)) return;
    const double size = std::fabs(static_cast<double>(sample));
    // Not std::max, which would pass over a NaN.
    if (!(size <= peak)) peak = size;
  }
}

}  // namespace syrinx::bench
