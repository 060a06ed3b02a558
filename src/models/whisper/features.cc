#include "models/whisper/features.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "audio/loudest_sample.h"
#include "base/check.h"
#include "models/whisper/config.h"

namespace syrinx::whisper {
namespace {

constexpr size_t kFftSize = 400;
constexpr size_t kMargin = kFftSize / 2;  // mirrored at both ends
constexpr size_t kFramesAtOnce = 16;      // a vector's worth of the transform
constexpr float kLeastPower = 1e-10f;
constexpr float kDynamicRange = 8.0f;  // powers of ten

// Sample `at` of the mirrored sound; the first real one is 0.
float mirrored(std::span<const float> samples, size_t total, ptrdiff_t at) {
  const auto last = static_cast<ptrdiff_t>(total) - 1;
  if (at < 0) at = -at;
  if (at > last) at = 2 * last - at;
  const auto index = static_cast<size_t>(at);
  return index < samples.size() ? bounded_sample(samples[index]) : 0.0f;
}

}  // namespace

Result<LogMel> LogMel::create(size_t mels) {
  SYRINX_TRY(kernels::RealFft fft, kernels::RealFft::create(kFftSize));
  SYRINX_TRY(MelBank bank, MelBank::slaney({.mels = mels, .fft_size = kFftSize, .rate_hz = kSampleRateHz}));
  return LogMel(std::move(fft), std::move(bank));
}

LogMel::LogMel(kernels::RealFft fft, MelBank bank) : fft_(std::move(fft)), bank_(std::move(bank)), window_(kFftSize) {
  for (size_t i = 0; i < kFftSize; ++i) {
    const double turn = 2.0 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(kFftSize);
    window_[i] = static_cast<float>(0.5 - 0.5 * std::cos(turn));
  }
}

size_t LogMel::frame_count(size_t samples) { return samples / kHopSamples; }

size_t LogMel::scratch_size() const { return kFramesAtOnce * (kFftSize + 2 * fft_.bins()) + fft_.scratch_size(); }

void LogMel::compute(std::span<const float> samples, size_t total_samples, size_t first, std::span<float> scratch,
                     View<float, 2> out) const {
  const size_t count = out.extent(0), bins = fft_.bins();
  SYRINX_CHECK(total_samples > kMargin && total_samples >= samples.size() && scratch.size() >= scratch_size() &&
                   out.extent(1) == mels() && first + count <= frame_count(total_samples),
               "frames {} to {} of {} samples, {} mels", first, first + count, total_samples, out.extent(1));
  float* const frames = scratch.data();
  float* const real = frames + kFramesAtOnce * kFftSize;
  float* const imaginary = real + kFramesAtOnce * bins;
  const std::span<float> work = scratch.subspan(kFramesAtOnce * (kFftSize + 2 * bins));
  for (size_t n = 0; n < count; n += kFramesAtOnce) {
    const size_t here = std::min(kFramesAtOnce, count - n);
    for (size_t i = 0; i < here; ++i) {
      const auto start = static_cast<ptrdiff_t>((first + n + i) * kHopSamples) - static_cast<ptrdiff_t>(kMargin);
      for (size_t j = 0; j < kFftSize; ++j)
        frames[i * kFftSize + j] = window_[j] * mirrored(samples, total_samples, start + static_cast<ptrdiff_t>(j));
    }
    fft_.forward({frames, {here, kFftSize}}, {real, {here, bins}}, {imaginary, {here, bins}}, work);
    for (size_t i = 0; i < here; ++i) {
      float* const re = real + i * bins;
      const float* const im = imaginary + i * bins;
      for (size_t k = 0; k < bins; ++k) re[k] = re[k] * re[k] + im[k] * im[k];
      float* const row = out.row(n + i);
      bank_.apply({re, bins}, {row, mels()});
      for (size_t m = 0; m < mels(); ++m) row[m] = std::log10(std::max(row[m], kLeastPower));
    }
  }
}

std::vector<float> log_mel_of(const LogMel& log_mel, std::span<const float> samples, size_t total_samples,
                              ThreadTeam& team) {
  const size_t frames = LogMel::frame_count(total_samples), mels = log_mel.mels();
  std::vector<float> values(frames * mels);
  const size_t scratch_size = log_mel.scratch_size();
  std::vector<float> scratch(scratch_size * static_cast<size_t>(team.size()));
  team.run([&](int member) {
    const Range own = split_range(frames, member, team.size(), kFramesAtOnce);
    if (own.begin == own.end) return;
    log_mel.compute(samples, total_samples, own.begin,
                    std::span(scratch).subspan(static_cast<size_t>(member) * scratch_size, scratch_size),
                    {values.data() + own.begin * mels, {own.end - own.begin, mels}});
  });
  return values;
}

float peak(View<const float, 2> log_mel) {
  float most = std::log10(kLeastPower);
  for (size_t n = 0; n < log_mel.extent(0); ++n)
    most = std::max(most, *std::max_element(log_mel.row(n), log_mel.row(n) + log_mel.extent(1)));
  return most;
}

void normalise(View<const float, 2> log_mel, float peak, View<float, 2> out) {
  const float least = peak - kDynamicRange;
  for (size_t n = 0; n < log_mel.extent(0); ++n) {
    const float* const from = log_mel.row(n);
    float* const to = out.row(n);
    for (size_t m = 0; m < log_mel.extent(1); ++m) to[m] = (std::max(from[m], least) + 4.0f) / 4.0f;
  }
}

}  // namespace syrinx::whisper
