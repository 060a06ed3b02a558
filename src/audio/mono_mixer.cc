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
// They clearly do not where it is above this share: a noise that they share, in the pauses of a voice, may be between.
constexpr double kApart = 0.5;
constexpr int kApartWindows = kWindowsASecond;
constexpr double kLost = 0.5;    // of the mean's power: a channel below that lacks what another has
constexpr double kQuiet = 1e-4;  // of the loudest window's power: a window below says nothing about the channels
constexpr int kFadesASecond = 125;
constexpr size_t kSilentFrames = 16384;  // a block of silence

}  // namespace

bool MonoMixer::is_longer(uint64_t frames) const {
  const double times = limits_.each_channel_counts ? static_cast<double>(channels_) : 1;
  return times * static_cast<double>(frames) > limits_.max_seconds * rate_hz_;
}

Status MonoMixer::refused(Status status) {
  refused_ |= !status;
  return status;
}

Status MonoMixer::begin(int channels, int rate_hz, std::optional<uint64_t> frames) {
  return refused(begin_sink(channels, rate_hz, frames));
}

Status MonoMixer::add(std::span<const float> block) { return refused(add_all(block)); }

Status MonoMixer::silence(uint64_t frames) { return refused(add_silence(frames)); }

Status MonoMixer::look(std::span<const float> block) {
  return sink_.looked ? refused(sink_.looked(block.size())) : Status();
}

Status MonoMixer::finish() {
  if (waiting_.empty()) return {};
  return refused(mix_windows(waiting_.size() / channels_));
}

Status MonoMixer::begin_sink(int channels, int rate_hz, std::optional<uint64_t> frames) {
  if (channels < 1 || channels > limits_.max_channels)
    return fail(Code::kLimitExceeded, "'{}' has {} channels; 1 to {} are read", name_, channels, limits_.max_channels);
  if (rate_hz < limits_.min_rate_hz || rate_hz > limits_.max_rate_hz)
    return fail(Code::kLimitExceeded, "'{}' has a rate of {} Hz; {} to {} Hz are read", name_, rate_hz,
                limits_.min_rate_hz, limits_.max_rate_hz);
  channels_ = static_cast<size_t>(channels);
  rate_hz_ = rate_hz;
  if (frames && is_longer(*frames))
    return fail(Code::kLimitExceeded, "'{}' has {:.1f} s of sound{}; at most {:.0f} s are read", name_,
                static_cast<double>(*frames) / rate_hz,
                limits_.each_channel_counts ? fmt::format(" in each of {} channels", channels) : "",
                limits_.max_seconds);
  if (limits_.channel && (*limits_.channel < 0 || *limits_.channel >= channels))
    return fail(Code::kInvalidArgument, "'{}' has {} channels and none of the number {}, counted from 0", name_,
                channels, *limits_.channel);
  if (limits_.channel) instead_ = static_cast<size_t>(*limits_.channel);
  if (sink_.channels) sink_.channels(channels);
  return sink_.begin(rate_hz, frames);
}

Status MonoMixer::count(uint64_t frames) {
  frames_ += frames;
  if (is_longer(frames_))
    return fail(Code::kLimitExceeded, "'{}' has more than {:.0f} s of sound{}, which is all that is read; cut it",
                name_, limits_.max_seconds, limits_.each_channel_counts ? " in all channels together" : "");
  return {};
}

// The window ends early, so that nothing waits.
Status MonoMixer::add_silence(uint64_t frames) {
  SYRINX_CHECK(channels_ > 0);
  SYRINX_TRY_VOID(finish());
  for (uint64_t left = frames; left > 0;) {
    const uint64_t some = std::min<uint64_t>(left, kSilentFrames);
    SYRINX_TRY_VOID(count(some));
    mono_.assign(some, 0.0f);
    SYRINX_TRY_VOID(sink_.add(mono_));
    left -= some;
  }
  return {};
}

Status MonoMixer::add_all(std::span<const float> block) {
  SYRINX_CHECK(channels_ > 0);
  SYRINX_TRY_VOID(count(block.size() / channels_));
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

// A sample of the channel, or of the mean.
float MonoMixer::sample(std::optional<size_t> channel, std::span<const float> frame) const {
  if (channel) return bounded_sample(frame[*channel] * scale_);
  float sum = 0;
  for (const float one : frame) sum += one;
  return bounded_sample(sum / static_cast<float>(channels_) * scale_);
}

// The channel in place of the mean, by the powers of the mean, of all channels and of each in this window.
void MonoMixer::choose(double mixed, double all) {
  if (all == 0 || all < kQuiet * loudest_) return;
  loudest_ = std::max(loudest_, all);
  const double share = mixed * static_cast<double>(channels_ * channels_) / all;
  apart_windows_ = share >= kApart ? apart_windows_ + 1 : 0;
  const bool is_lost = instead_ && powers_[*instead_] < kLost * mixed;
  if (share < kCancelled && !instead_)
    instead_ = static_cast<size_t>(std::max_element(powers_.begin(), powers_.end()) - powers_.begin());
  else if (is_lost || apart_windows_ >= kApartWindows)
    instead_.reset();
}

Status MonoMixer::mix(std::span<const float> window, std::span<float> out) {
  powers_.assign(channels_, 0.0);
  double mixed = 0, all = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    float sum = 0;
    for (size_t c = 0; c < channels_; ++c) {
      const float one = window[i * channels_ + c];
      sum += one;
      powers_[c] += static_cast<double>(one) * one;
    }
    if (!std::isfinite(sum)) return fail(Code::kDataLoss, "'{}' has a sample that is not a number", name_);
    const float mean = sum / static_cast<float>(channels_);
    mixed += static_cast<double>(mean) * mean;
    out[i] = bounded_sample(mean * scale_);
  }
  const auto frame = [&](size_t i) { return window.subspan(i * channels_, channels_); };
  const std::optional<size_t> before = instead_;
  for (const double power : powers_) all += power;
  if (channels_ > 1 && !limits_.channel) choose(mixed, all);
  if (instead_)
    for (size_t i = 0; i < out.size(); ++i) out[i] = sample(instead_, frame(i));
  const bool fades = has_mixed_ && instead_ != before;
  const size_t fade = fades ? std::min(out.size(), static_cast<size_t>(rate_hz_ / kFadesASecond)) : 0;
  for (size_t i = 0; i < fade; ++i) {
    const float share = static_cast<float>(i + 1) / static_cast<float>(fade + 1);
    out[i] = (1 - share) * sample(before, frame(i)) + share * out[i];
  }
  has_mixed_ = true;
  return {};
}

}  // namespace syrinx
