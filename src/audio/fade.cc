#include "audio/fade.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace syrinx {
namespace {

constexpr double kWindowMs = 5;

size_t samples_in(double ms, int rate_hz) { return static_cast<size_t>(std::max(0.0, ms * rate_hz / 1000 + 0.5)); }

// Gain of step i of n: 0 at the first, 1 just after the last.
float gain(size_t i, size_t n) {
  return static_cast<float>(0.5 - 0.5 * std::cos(std::numbers::pi * static_cast<double>(i) / static_cast<double>(n)));
}

bool reaches(std::span<const float> window, double square) {
  double sum = 0;
  for (float sample : window) sum += static_cast<double>(sample) * sample;
  return sum >= square * static_cast<double>(window.size());
}

}  // namespace

void fade_in(std::span<float> samples, int rate_hz, double ms) {
  const size_t n = std::min(samples.size(), samples_in(ms, rate_hz));
  for (size_t i = 0; i < n; ++i) samples[i] *= gain(i, n);
}

void fade_out(std::span<float> samples, int rate_hz, double ms) {
  const size_t n = std::min(samples.size(), samples_in(ms, rate_hz));
  for (size_t i = 0; i < n; ++i) samples[samples.size() - 1 - i] *= gain(i, n);
}

SampleRange find_sound(std::span<const float> samples, int rate_hz, double quiet_db) {
  const size_t window = std::max<size_t>(1, samples_in(kWindowMs, rate_hz));
  const double square = std::pow(10.0, quiet_db / 10);
  SampleRange range;
  for (size_t at = 0; at < samples.size(); at += window) {
    const size_t size = std::min(window, samples.size() - at);
    if (!reaches(samples.subspan(at, size), square)) continue;
    if (range.end == 0) range.begin = at;
    range.end = at + size;
  }
  return range;
}

std::span<float> trim_silence(std::span<float> samples, int rate_hz, const TrimRule& rule) {
  const SampleRange sound = find_sound(samples, rate_hz, rule.quiet_db);
  if (sound.size() == 0) return {};
  const size_t before = std::min(sound.begin, samples_in(rule.keep_before_ms, rate_hz));
  const size_t after = std::min(samples.size() - sound.end, samples_in(rule.keep_after_ms, rate_hz));
  const auto kept = samples.subspan(sound.begin - before, before + sound.size() + after);
  fade_in(kept, rate_hz);
  fade_out(kept, rate_hz);
  return kept;
}

}  // namespace syrinx
