#include "audio/pcm.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace syrinx {

void PcmQuantizer::convert(std::span<const float> in, std::span<int16_t> out) {
  SYRINX_CHECK(in.size() == out.size(), "{} samples into {}", in.size(), out.size());
  for (size_t i = 0; i < in.size(); ++i) {
    float sample = in[i];
    if (!(sample >= -1.0f && sample <= 1.0f)) {  // also true for a NaN
      ++clipped_;
      sample = std::isnan(sample) ? 0.0f : std::clamp(sample, -1.0f, 1.0f);
    }
    float scaled = sample * 32768.0f;
    if (dither_) scaled += dither_->uniform() - dither_->uniform();
    out[i] = static_cast<int16_t>(std::clamp(std::nearbyint(scaled), -32768.0f, 32767.0f));
  }
}

void pcm_to_float(std::span<const int16_t> in, std::span<float> out) {
  SYRINX_CHECK(in.size() == out.size(), "{} samples into {}", in.size(), out.size());
  for (size_t i = 0; i < in.size(); ++i) out[i] = static_cast<float>(in[i]) * (1.0f / 32768.0f);
}

}  // namespace syrinx
