#include "audio/stream_resampler.h"

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

// The filter cut into its phases [up, 2 * reach + 1], so that a sample reads one row from end to end.
std::vector<float> cut(const std::vector<double>& filter, size_t up, size_t reach) {
  const size_t half = filter.size() - 1, count = 2 * reach + 1;
  std::vector<float> taps(up * count);
  for (size_t phase = 0; phase < up; ++phase) {
    for (size_t i = 0; i < count; ++i) {
      // Sample q - reach + i lies (reach - i) samples before sample q, which lies `phase` before the wanted time.
      const int64_t k = static_cast<int64_t>(phase) +
                        (static_cast<int64_t>(reach) - static_cast<int64_t>(i)) * static_cast<int64_t>(up);
      if (std::abs(k) <= static_cast<int64_t>(half))
        taps[phase * count + i] = static_cast<float>(filter[static_cast<size_t>(std::abs(k))]);
    }
  }
  return taps;
}

}  // namespace

Result<StreamResampler> StreamResampler::create(int from_hz, int to_hz) {
  for (const int rate : {from_hz, to_hz})
    if (rate < kMinResampleHz || rate > kMaxResampleHz)
      return fail(Code::kLimitExceeded, "a rate of {} Hz cannot be converted; {} to {} Hz can", rate, kMinResampleHz,
                  kMaxResampleHz);
  const size_t common = static_cast<size_t>(std::gcd(from_hz, to_hz));
  StreamResampler out(static_cast<size_t>(to_hz) / common, static_cast<size_t>(from_hz) / common);
  if (out.up_ == out.down_) return out;
  const std::vector<double> filter = low_pass(std::max(out.up_, out.down_), out.up_);
  out.reach_ = (filter.size() - 1) / out.up_ + 1;
  out.taps_ = cut(filter, out.up_, out.reach_);
  return out;
}

// Row entry i meets sample at_ - reach_ + i; those outside the sound are zeros.
float StreamResampler::sample() const {
  const uint64_t begin = at_ > reach_ ? at_ - reach_ : 0;
  const size_t skip = reach_ > at_ ? reach_ - static_cast<size_t>(at_) : 0;
  const size_t count = std::min<size_t>(2 * reach_ + 1 - skip, kept_.size() - static_cast<size_t>(begin - first_));
  const float* const taps = &taps_[phase_ * (2 * reach_ + 1) + skip];
  const float* const sound = kept_.data() + (begin - first_);
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += static_cast<double>(taps[i]) * static_cast<double>(sound[i]);
  return static_cast<float>(sum);
}

void StreamResampler::step() {
  phase_ += down_;
  at_ += phase_ / up_;
  phase_ %= up_;
}

// Drops the samples that no later output reads.
void StreamResampler::forget() {
  const uint64_t begin = at_ > reach_ ? at_ - reach_ : 0;
  const size_t old = static_cast<size_t>(std::min<uint64_t>(begin - first_, kept_.size()));
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(old));
  first_ += old;
}

void StreamResampler::push(std::span<const float> block, std::vector<float>& out) {
  if (taps_.empty()) {
    out.insert(out.end(), block.begin(), block.end());
    return;
  }
  kept_.insert(kept_.end(), block.begin(), block.end());
  for (const uint64_t known = first_ + kept_.size(); at_ + reach_ < known; step()) out.push_back(sample());
  forget();
}

void StreamResampler::finish(std::vector<float>& out) {
  // The result has a sample wherever its time is before the end: ceil(n up / down) of them.
  for (const uint64_t size = first_ + kept_.size(); at_ < size; step()) out.push_back(sample());
}

void StreamResampler::reset() {
  kept_.clear();
  first_ = at_ = phase_ = 0;
}

}  // namespace syrinx
