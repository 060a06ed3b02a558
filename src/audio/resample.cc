#include "audio/resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace syrinx {
namespace {

constexpr size_t kLobes = 10;  // zero crossings of the low-pass on each side
constexpr double kBeta = 5.0;

// Modified Bessel function of order 0, by its power series; for x up to 5 the terms vanish within thirty.
double bessel_i0(double x) {
  double term = 1, sum = 1;
  for (int k = 1; k <= 40; ++k) {
    term *= (x / 2 / k) * (x / 2 / k);
    sum += term;
  }
  return sum;
}

// h[k] for k from 0 to 10 M; h[-k] is the same.
std::vector<double> low_pass(size_t longest, size_t up) {
  const double half = static_cast<double>(kLobes * longest), width = static_cast<double>(longest);
  std::vector<double> filter(kLobes * longest + 1);
  double sum = 0;
  for (size_t i = 0; i < filter.size(); ++i) {
    const double k = static_cast<double>(i), angle = std::numbers::pi * k / width;
    const double ideal = i == 0 ? 1 : std::sin(angle) / angle;
    filter[i] = ideal * bessel_i0(kBeta * std::sqrt(std::max(0.0, 1 - (k / half) * (k / half))));
    sum += i == 0 ? filter[i] : 2 * filter[i];
  }
  for (double& value : filter) value *= static_cast<double>(up) / sum;
  return filter;
}

// The filter cut into its phases, so that a sample reads one row from end to end.
struct Phases {
  size_t reach = 0;         // samples of the sound before and after the one below
  std::vector<float> taps;  // [up, 2 * reach + 1], in the sound's order
  size_t count() const { return 2 * reach + 1; }
};

Phases cut(const std::vector<double>& filter, size_t up) {
  const size_t half = filter.size() - 1;
  Phases out;
  out.reach = half / up + 1;
  out.taps.assign(up * out.count(), 0.0f);
  for (size_t phase = 0; phase < up; ++phase) {
    for (size_t i = 0; i < out.count(); ++i) {
      // Sample q - reach + i lies (reach - i) samples before sample q, which lies `phase` before the wanted time.
      const int64_t k = static_cast<int64_t>(phase) +
                        (static_cast<int64_t>(out.reach) - static_cast<int64_t>(i)) * static_cast<int64_t>(up);
      if (std::abs(k) <= static_cast<int64_t>(half))
        out.taps[phase * out.count() + i] = static_cast<float>(filter[static_cast<size_t>(std::abs(k))]);
    }
  }
  return out;
}

}  // namespace

Result<std::vector<float>> resample(std::span<const float> sound, int from_hz, int to_hz) {
  for (const int rate : {from_hz, to_hz})
    if (rate < kMinResampleHz || rate > kMaxResampleHz)
      return fail(Code::kLimitExceeded, "a rate of {} Hz cannot be converted; {} to {} Hz can", rate, kMinResampleHz,
                  kMaxResampleHz);
  const size_t common = static_cast<size_t>(std::gcd(from_hz, to_hz));
  const size_t up = static_cast<size_t>(to_hz) / common, down = static_cast<size_t>(from_hz) / common;
  if (sound.size() > kMaxResampledSamples || (sound.size() * up + down - 1) / down > kMaxResampledSamples)
    return fail(Code::kLimitExceeded, "a sound of {} samples is too long to be converted from {} to {} Hz; shorten it",
                sound.size(), from_hz, to_hz);
  if (up == down) return std::vector<float>(sound.begin(), sound.end());

  const Phases phases = cut(low_pass(std::max(up, down), up), up);
  std::vector<float> out((sound.size() * up + down - 1) / down);
  for (size_t m = 0; m < out.size(); ++m) {
    const size_t at = m * down / up, phase = m * down % up;
    // Row entry i meets sample at - reach + i; those outside the sound are zeros.
    const size_t skip = phases.reach > at ? phases.reach - at : 0;
    const size_t first = at + skip - phases.reach;
    const size_t count = std::min(phases.count() - skip, sound.size() - first);
    const float* const taps = &phases.taps[phase * phases.count() + skip];
    double sum = 0;
    for (size_t i = 0; i < count; ++i) sum += static_cast<double>(taps[i]) * static_cast<double>(sound[first + i]);
    out[m] = static_cast<float>(sum);
  }
  return out;
}

}  // namespace syrinx
