#include "audio/mono_mixer.h"

#include <cmath>

#include "audio/loudest_sample.h"
#include "base/check.h"

namespace syrinx {
namespace {

bool is_longer(uint64_t frames, int rate_hz, const SoundLimits& limits) {
  return static_cast<double>(frames) > limits.max_seconds * rate_hz;
}

}  // namespace

Status MonoMixer::begin(int channels, int rate_hz, std::optional<uint64_t> frames) {
  if (channels < 1 || channels > limits_.max_channels)
    return fail(Code::kLimitExceeded, "'{}' has {} channels; 1 to {} are read", name_, channels, limits_.max_channels);
  if (rate_hz < limits_.min_rate_hz || rate_hz > limits_.max_rate_hz)
    return fail(Code::kLimitExceeded, "'{}' has a rate of {} Hz; {} to {} Hz are read", name_, rate_hz,
                limits_.min_rate_hz, limits_.max_rate_hz);
  if (frames && is_longer(*frames, rate_hz, limits_))
    return fail(Code::kLimitExceeded, "'{}' has {:.1f} s of sound; at most {:.0f} s are read", name_,
                static_cast<double>(*frames) / rate_hz, limits_.max_seconds);
  channels_ = static_cast<size_t>(channels);
  rate_hz_ = rate_hz;
  return sink_.begin(rate_hz, frames);
}

Status MonoMixer::add(std::span<const float> block) {
  SYRINX_CHECK(channels_ > 0);
  mono_.resize(block.size() / channels_);
  frames_ += mono_.size();
  if (is_longer(frames_, rate_hz_, limits_))
    return fail(Code::kLimitExceeded, "'{}' has more than {:.0f} s of sound, which is all that is read; cut it", name_,
                limits_.max_seconds);
  for (size_t i = 0; i < mono_.size(); ++i) {
    float sum = 0;
    for (size_t c = 0; c < channels_; ++c) sum += block[i * channels_ + c];
    if (!std::isfinite(sum)) return fail(Code::kDataLoss, "'{}' has a sample that is not a number", name_);
    mono_[i] = bounded_sample(sum / static_cast<float>(channels_));
  }
  return sink_.add(mono_);
}

}  // namespace syrinx
