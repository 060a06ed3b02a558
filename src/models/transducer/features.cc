#include "models/transducer/features.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

namespace syrinx::transducer {
namespace {

constexpr size_t kBatch = 32;             // frames of one transform
constexpr double kDeviationGuard = 1e-5;  // added to a deviation

std::vector<float> hann(size_t size) {
  std::vector<float> out(size);
  for (size_t n = 0; n < size; ++n)
    out[n] = static_cast<float>(
        0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(n) / static_cast<double>(size - 1)));
  return out;
}

}  // namespace

Features::Features(const FeatureConfig& config, std::vector<float> window, MelBank bank, kernels::RealFft fft)
    : config_(config), window_(std::move(window)), bank_(std::move(bank)), fft_(std::move(fft)) {}

Result<Features> Features::make(WeightReader& reader, const FeatureConfig& config) {
  const std::string prefix = "preprocessor.featurizer.";
  reader.know_prefix("preprocessor.");
  const size_t bins = config.fft / 2 + 1;
  SYRINX_TRY(kernels::RealFft fft, kernels::RealFft::create(config.fft));
  SYRINX_TRY(MelBank bank, MelBank::slaney({.mels = config.mels,
                                            .fft_size = config.fft,
                                            .rate_hz = static_cast<double>(config.rate_hz),
                                            .low_hz = config.low_hz,
                                            .high_hz = config.high_hz}));
  if (reader.has(prefix + "fb")) {
    const std::vector<float> stored = reader.values(prefix + "fb", {1, config.mels, bins});
    if (!stored.empty()) {
      SYRINX_TRY(bank, MelBank::from_matrix(stored, config.mels));
    }
  }
  std::vector<float> window = hann(config.window);
  if (reader.has(prefix + "window")) {
    std::vector<float> stored = reader.values(prefix + "window", {config.window});
    if (!stored.empty()) window = std::move(stored);
  }
  return Features(config, std::move(window), std::move(bank), std::move(fft));
}

Features::Scratch::Scratch(const Features& features)
    : frames(kBatch * features.fft_.size()),
      re(kBatch * features.fft_.bins()),
      im(kBatch * features.fft_.bins()),
      power(features.fft_.bins()),
      fft(features.fft_.scratch_size()) {}

void Features::log_mels(std::span<const float> emphasised, View<float, 2> mels, Scratch& s) const {
  const size_t size = fft_.size(), bins = fft_.bins(), before = (size - window_.size()) / 2;
  for (size_t first = 0; first < mels.extent(0); first += kBatch) {
    const size_t count = std::min(kBatch, mels.extent(0) - first);
    for (size_t t = 0; t < count; ++t) {
      const float* const from = emphasised.data() + (first + t) * config_.hop;
      float* const frame = s.frames.data() + t * size + before;  // zeros around it
      for (size_t n = 0; n < window_.size(); ++n) frame[n] = from[n] * window_[n];
    }
    fft_.forward({s.frames.data(), {count, size}}, {s.re.data(), {count, bins}}, {s.im.data(), {count, bins}},
                 s.fft.span());
    for (size_t t = 0; t < count; ++t) {
      const float *const re = s.re.data() + t * bins, *const im = s.im.data() + t * bins;
      for (size_t k = 0; k < bins; ++k) s.power[k] = re[k] * re[k] + im[k] * im[k];
      const std::span<float> row(mels.row(first + t), config_.mels);
      bank_.apply(s.power.span(), row);
      for (float& value : row) value = std::log(value + config_.log_guard);
    }
  }
}

void Features::compute(std::span<const float> samples, View<float, 2> mels, ThreadTeam& team, Room& room) const {
  const size_t count = frames(samples.size()), before = config_.before();
  SYRINX_CHECK(mels.extent(0) == count && mels.extent(1) == config_.mels, "{} frames, {} expected", mels.extent(0),
               count);
  if (count == 0) return;
  room.emphasised.assign(before + samples.size() + config_.window, 0.0f);
  while (room.members.size() < static_cast<size_t>(team.size())) room.members.emplace_back(*this);
  for (size_t n = 0; n < samples.size(); ++n)
    room.emphasised[before + n] = samples[n] - (n > 0 ? config_.preemphasis * samples[n - 1] : 0.0f);
  team.run([&](int member) {
    const Range own = split_range(count, member, team.size(), kBatch);
    if (own.begin == own.end) return;
    log_mels(std::span(room.emphasised).subspan(own.begin * config_.hop),
             {mels.row(own.begin), {own.end - own.begin, config_.mels}, {mels.stride(0), 1}},
             room.members[static_cast<size_t>(member)]);
  });
  if (config_.per_feature) normalise(mels, room);
}

// The deviation is that of a sample (n - 1), 0 for a single frame.
void Features::normalise(View<float, 2> mels, Room& room) const {
  const size_t count = mels.extent(0);
  std::vector<double>&sums = room.sums, &squares = room.squares;
  sums.assign(config_.mels, 0);
  squares.assign(config_.mels, 0);
  for (size_t t = 0; t < count; ++t)
    for (size_t m = 0; m < config_.mels; ++m) sums[m] += static_cast<double>(mels(t, m));
  for (double& sum : sums) sum /= static_cast<double>(count);
  for (size_t t = 0; t < count; ++t)
    for (size_t m = 0; m < config_.mels; ++m) {
      const double difference = static_cast<double>(mels(t, m)) - sums[m];
      squares[m] += difference * difference;
    }
  const double divisor = static_cast<double>(std::max<size_t>(count - 1, 1));
  for (size_t t = 0; t < count; ++t)
    for (size_t m = 0; m < config_.mels; ++m)
      mels(t, m) = static_cast<float>((static_cast<double>(mels(t, m)) - sums[m]) /
                                      (std::sqrt(squares[m] / divisor) + kDeviationGuard));
}

FeatureStream::FeatureStream(std::shared_ptr<const Features> features)
    : features_(std::move(features)),
      scratch_(*features_),
      held_(features_->config().window + kBatch * features_->config().hop) {
  reset();
}

// Before the sound there are zeros.
void FeatureStream::reset() {
  held_count_ = features_->config().before();
  std::fill_n(held_.data(), held_count_, 0.0f);
  samples_ = frames_ = 0;
  last_ = 0;
}

// Computes the frames whose windows are held, from row `at` of `mels` on, and forgets what no other frame reads.
size_t FeatureStream::rows(View<float, 2> mels, size_t at) {
  const FeatureConfig& c = features_->config();
  if (held_count_ < c.window) return 0;
  const size_t count = std::min((held_count_ - c.window) / c.hop + 1, mels.extent(0) - at);
  if (count == 0) return 0;
  features_->log_mels(held_.span(), {mels.row(at), {count, c.mels}, {mels.stride(0), 1}}, scratch_);
  held_count_ -= count * c.hop;
  std::memmove(held_.data(), held_.data() + count * c.hop, held_count_ * sizeof(float));
  frames_ += count;
  return count;
}

FeatureStream::Taken FeatureStream::push(std::span<const float> samples, View<float, 2> mels) {
  const float factor = features_->config().preemphasis;
  Taken taken;
  for (;;) {
    taken.rows += rows(mels, taken.rows);
    const size_t count = std::min(held_.size() - held_count_, samples.size() - taken.samples);
    if (count == 0 || taken.rows == mels.extent(0)) break;
    float* const to = held_.data() + held_count_;
    for (size_t n = 0; n < count; ++n) {
      const float sample = samples[taken.samples + n];
      to[n] = samples_ + n == 0 ? sample : sample - factor * last_;
      last_ = sample;
    }
    held_count_ += count;
    taken.samples += count;
    samples_ += count;
  }
  return taken;
}

size_t FeatureStream::finish(View<float, 2> mels) {
  const FeatureConfig& c = features_->config();
  // A hop is at most half a window, so no frame was given that the recording does not have.
  const size_t left = features_->frames(samples_) - frames_;
  const size_t wanted = std::min(left, mels.extent(0));
  if (wanted == 0) return 0;
  const size_t needed = std::min(c.window + (wanted - 1) * c.hop, held_.size());
  if (held_count_ < needed) {
    std::fill(held_.data() + held_count_, held_.data() + needed, 0.0f);
    held_count_ = needed;
  }
  return rows({mels.data(), {wanted, c.mels}, {mels.stride(0), 1}}, 0);
}

}  // namespace syrinx::transducer
