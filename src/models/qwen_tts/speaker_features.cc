#include "models/qwen_tts/speaker_features.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "audio/loudest_sample.h"
#include "base/check.h"

namespace syrinx::qwen_tts {
namespace {

constexpr size_t kFftSize = 1024;
constexpr size_t kMargin = (kFftSize - SpeakerFeatures::kHopSamples) / 2;  // mirrored at both ends
static_assert(SpeakerFeatures::kLeastSamples == kMargin + 1);
constexpr float kPowerGuard = 1e-9f, kLeastMel = 1e-5f;

// Sample `at` of the mirrored sound; the first real one is 0.
float mirrored(std::span<const float> samples, ptrdiff_t at) {
  const auto last = static_cast<ptrdiff_t>(samples.size()) - 1;
  if (at < 0) at = -at;
  if (at > last) at = 2 * last - at;
  return bounded_sample(samples[static_cast<size_t>(at)]);
}

}  // namespace

Result<SpeakerFeatures> SpeakerFeatures::create(size_t mels, size_t sample_rate) {
  if (sample_rate != kSampleRate)
    return fail(Code::kUnsupported, "the speaker encoder's sample_rate is {}, only {} can be run", sample_rate,
                kSampleRate);
  SYRINX_TRY(kernels::RealFft fft, kernels::RealFft::create(kFftSize));
  SYRINX_TRY(MelBank bank, MelBank::slaney({.mels = mels,
                                            .fft_size = kFftSize,
                                            .rate_hz = static_cast<double>(kSampleRate),
                                            .low_hz = 0,
                                            .high_hz = static_cast<double>(kSampleRate) / 2}));
  return SpeakerFeatures(std::move(fft), std::move(bank));
}

SpeakerFeatures::SpeakerFeatures(kernels::RealFft fft, MelBank bank)
    : fft_(std::move(fft)), bank_(std::move(bank)), window_(kFftSize) {
  for (size_t i = 0; i < kFftSize; ++i) {
    const double turn = 2.0 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(kFftSize);
    window_[i] = static_cast<float>(0.5 - 0.5 * std::cos(turn));
  }
}

size_t SpeakerFeatures::scratch_size() const {
  return kFramesAtOnce * (kFftSize + 2 * fft_.bins()) + fft_.scratch_size();
}

void SpeakerFeatures::compute(std::span<const float> samples, size_t first, std::span<float> scratch,
                              View<float, 2> out) const {
  const size_t count = out.extent(0), bins = fft_.bins();
  SYRINX_CHECK(samples.size() >= kLeastSamples && scratch.size() >= scratch_size() && out.extent(1) == mels() &&
                   first + count <= frame_count(samples.size()),
               "frames {} to {} of {} samples, {} mels", first, first + count, samples.size(), out.extent(1));
  float* const frames = scratch.data();
  float* const real = frames + kFramesAtOnce * kFftSize;
  float* const imaginary = real + kFramesAtOnce * bins;
  const std::span<float> work = scratch.subspan(kFramesAtOnce * (kFftSize + 2 * bins));
  for (size_t n = 0; n < count; n += kFramesAtOnce) {
    const size_t here = std::min(kFramesAtOnce, count - n);
    for (size_t i = 0; i < here; ++i) {
      const auto start = static_cast<ptrdiff_t>((first + n + i) * kHopSamples) - static_cast<ptrdiff_t>(kMargin);
      for (size_t j = 0; j < kFftSize; ++j)
        frames[i * kFftSize + j] = window_[j] * mirrored(samples, start + static_cast<ptrdiff_t>(j));
    }
    fft_.forward({frames, {here, kFftSize}}, {real, {here, bins}}, {imaginary, {here, bins}}, work);
    for (size_t i = 0; i < here; ++i) {
      float* const re = real + i * bins;
      const float* const im = imaginary + i * bins;
      for (size_t k = 0; k < bins; ++k) re[k] = std::sqrt(re[k] * re[k] + im[k] * im[k] + kPowerGuard);
      float* const row = out.row(n + i);
      bank_.apply({re, bins}, {row, mels()});
      for (size_t m = 0; m < mels(); ++m) row[m] = std::log(std::max(row[m], kLeastMel));
    }
  }
}

}  // namespace syrinx::qwen_tts
