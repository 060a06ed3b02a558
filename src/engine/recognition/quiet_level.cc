#include "engine/recognition/quiet_level.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace syrinx {
namespace {

constexpr size_t kBlock = 800;                                  // 50 ms
constexpr size_t kLoudestBlocks = 3;                            // a knock on the table is no speech
constexpr float kNormalPeak = 0.0178f, kLeastPeak = 0.000178f;  // -35 and -75 dB
constexpr float kRaisedPeak = 0.316f;                           // -10 dB

}  // namespace

float quiet_gain(std::span<const float> recording) {
  std::vector<float> peaks;
  for (size_t at = 0; at < recording.size(); at += kBlock) {
    float peak = 0;
    for (const float sample : recording.subspan(at, std::min(kBlock, recording.size() - at)))
      if (std::isfinite(sample)) peak = std::max(peak, std::abs(sample));
    peaks.push_back(peak);
  }
  if (peaks.size() <= kLoudestBlocks) return 1;
  std::nth_element(peaks.begin(), peaks.begin() + kLoudestBlocks, peaks.end(), std::greater<>());
  const float peak = peaks[kLoudestBlocks];
  return peak < kNormalPeak && peak >= kLeastPeak ? kRaisedPeak / peak : 1.0f;
}

}  // namespace syrinx
