#include "audio/mono_mixer.h"

#include <algorithm>
#include <cmath>

#include "audio/loudest_sample.h"
#include "base/check.h"

namespace syrinx {
namespace {

constexpr int kWindowsASecond = 20;
// Channels cancel each other where the mean's power is below this share of that of channels with nothing in common.
constexpr double kCancelled = 0.05;
constexpr double kQuiet = 1e-4;  // of the loudest window's power: a window below says nothing about the channels

bool is_longer(uint64_t frames, int rate_hz, const SoundLimits& limits) {
  return static_cast<double>(frames) > limits.max_seconds * rate_hz;
}

}  // namespace

Status MonoMixer::begin(int channels, int rate_hz, std::optional<uint64_t> frames) {
  Status status = begin_sink(channels, rate_hz, frames);
  refused_ |= !status;
  return status;
}

Status MonoMixer::add(std::span<const float> block) {
  Status status = add_all(block);
  refused_ |= !status;
  return status;
}

Status MonoMixer::finish() {
  if (waiting_.empty()) return {};
  Status status = mix_windows(waiting_.size() / channels_);
  refused_ |= !status;
  return status;
}

Status MonoMixer::begin_sink(int channels, int rate_hz, std::optional<uint64_t> frames) {
  if (channels < 1 || channels > limits_.max_channels)
    return fail(Code::kLimitExceeded, "'{}' has {} channels; 1 to {} are read", name_, channels, limits_.max_channels);
  if (rate_hz < limits_.min_rate_hz || rate_hz > limits_.max_rate_hz)
    return fail(Code::kLimitExceeded, "'{}' has a rate of {} Hz; {} to {} Hz are read", name_, rate_hz,
                limits_.min_rate_hz, limits_.max_rate_hz);
  if (frames && is_longer(*frames, rate_hz, limits_))
    return fail(Code::kLimitExceeded, "'{}' has {:.1f} s of sound; at most {:.0f} s are read", name_,
                static_cast<double>(*frames) / rate_hz, limits_.max_seconds);
  if (limits_.channel && (*limits_.channel < 0 || *limits_.channel >= channels))
    return fail(Code::kInvalidArgument, "'{}' has {} channels and none of the number {}, counted from 0", name_,
                channels, *limits_.channel);
  channels_ = static_cast<size_t>(channels);
  if (sink_.channels) sink_.channels(channels);
  rate_hz_ = rate_hz;
  return sink_.begin(rate_hz, frames);
}

Status MonoMixer::add_all(std::span<const float> block) {
  SYRINX_CHECK(channels_ > 0);
  frames_ += block.size() / channels_;
  if (is_longer(frames_, rate_hz_, limits_))
    return fail(Code::kLimitExceeded, "'{}' has more than {:.0f} s of sound, which is all that is read; cut it", name_,
                limits_.max_seconds);
  if (channels_ == 1) {
    mono_.resize(block.size());
    SYRINX_TRY_VOID(mix(block, mono_));
    return sink_.add(mono_);
  }
  waiting_.insert(waiting_.end(), block.begin(), block.end());
  return mix_windows(static_cast<size_t>(std::max(1, rate_hz_ / kWindowsASecond)));
}

// All whole windows of what waits, which does not depend on how the sound was cut into blocks.
Status MonoMixer::mix_windows(size_t window_frames) {
  const size_t window = window_frames * channels_, windows = waiting_.size() / window;
  if (windows == 0) return {};
  mono_.resize(windows * window_frames);
  for (size_t i = 0; i < windows; ++i)
    SYRINX_TRY_VOID(mix(std::span(waiting_).subspan(i * window, window),
                        std::span(mono_).subspan(i * window_frames, window_frames)));
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(windows * window));
  return sink_.add(mono_);
}

void MonoMixer::take(size_t channel, std::span<const float> window, std::span<float> out) const {
  for (size_t i = 0; i < out.size(); ++i) out[i] = bounded_sample(window[i * channels_ + channel] * scale_);
}

Status MonoMixer::mix(std::span<const float> window, std::span<float> out) {
  powers_.assign(channels_, 0.0);
  double mixed = 0, all = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    float sum = 0;
    for (size_t c = 0; c < channels_; ++c) {
      const float sample = window[i * channels_ + c];
      sum += sample;
      powers_[c] += static_cast<double>(sample) * sample;
    }
    if (!std::isfinite(sum)) return fail(Code::kDataLoss, "'{}' has a sample that is not a number", name_);
    const float mean = sum / static_cast<float>(channels_);
    mixed += static_cast<double>(mean) * mean;
    out[i] = bounded_sample(mean * scale_);
  }
  if (limits_.channel) take(static_cast<size_t>(*limits_.channel), window, out);
  if (channels_ == 1 || limits_.channel) return {};
  for (const double power : powers_) all += power;
  if (all >= kQuiet * loudest_) {
    const auto channels = static_cast<double>(channels_);
    if (mixed >= kCancelled * all / (channels * channels))
      instead_.reset();
    else if (!instead_)
      instead_ = static_cast<size_t>(std::max_element(powers_.begin(), powers_.end()) - powers_.begin());
    loudest_ = std::max(loudest_, all);
  }
  if (!instead_) return {};
  take(*instead_, window, out);
  return {};
}

}  // namespace syrinx
