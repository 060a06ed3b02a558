#include "audio/mono_collector.h"

#include <cmath>

namespace syrinx {

Result<MonoCollector> MonoCollector::create(int channels, int rate_hz, const SoundLimits& limits,
                                            const std::string& name) {
  if (channels < 1 || channels > limits.max_channels)
    return fail(Code::kLimitExceeded, "'{}' has {} channels; 1 to {} are read", name, channels, limits.max_channels);
  if (rate_hz < limits.min_rate_hz || rate_hz > limits.max_rate_hz)
    return fail(Code::kLimitExceeded, "'{}' has a rate of {} Hz; {} to {} Hz are read", name, rate_hz,
                limits.min_rate_hz, limits.max_rate_hz);
  return MonoCollector(channels, rate_hz, limits, name);
}

Status MonoCollector::add(std::span<const float> block) {
  const size_t frames = block.size() / channels_;
  std::vector<float>& samples = recording_.samples;
  if (static_cast<double>(samples.size() + frames) > max_seconds_ * recording_.rate_hz)
    return fail(Code::kLimitExceeded, "'{}' has more than {:.0f} s of sound, which is all that is read; cut it", *name_,
                max_seconds_);
  for (size_t i = 0; i < frames; ++i) {
    float sum = 0;
    for (size_t c = 0; c < channels_; ++c) sum += block[i * channels_ + c];
    if (!std::isfinite(sum)) return fail(Code::kDataLoss, "'{}' has a sample that is no number", *name_);
    samples.push_back(sum / static_cast<float>(channels_));
  }
  return {};
}

}  // namespace syrinx
