#include "audio/float_range.h"

#include <algorithm>
#include <cmath>

namespace syrinx {
namespace {

constexpr float kLeastPeak = 1000;  // of integers of 16 bits that were changed since: 30 dB below full scale
constexpr uint64_t kSingleSamples = 10, kSingleShare = 1000;

}  // namespace

bool FloatRange::add(float sample) {
  ++samples_;
  if (!std::isfinite(sample)) return false;
  const float size = std::abs(sample);
  const bool breaks = all_whole_ && sample != std::trunc(sample), is_loud = size > kLoudestFloat;
  const bool news = breaks || is_loud || (size > peak_ && size > 1);
  if (breaks) all_whole_ = false;
  if (is_loud) ++too_loud_;
  peak_ = std::max(peak_, size);
  return news;
}

void FloatRange::add(std::span<const float> samples) {
  for (const float sample : samples) add(sample);
}

Status FloatRange::rescale(std::span<float> samples, const std::string& name) {
  Status first_fault;
  for (float& sample : samples) {
    if (add(sample)) {
      const Result<float> factor = scale(name);
      has_scale_ = factor.has_value();
      if (factor) factor_ = *factor;
      if (!factor && first_fault) first_fault = tl::unexpected(factor.error());
    }
    sample *= factor_;
    if (!has_scale_) sample = std::clamp(sample, -1.0f, 1.0f);
  }
  return first_fault;
}

Result<float> FloatRange::scale(const std::string& name) const {
  const bool whole = all_whole_ && peak_ > 1;
  if (!whole && (peak_ <= kLoudestFloat || too_loud_ <= std::max(kSingleSamples, samples_ / kSingleShare))) return 1.0f;
  if (whole || peak_ >= kLeastPeak)
    for (const float full : {0x1p15f, 0x1p23f, 0x1p31f})
      if (peak_ <= 2 * full) return 1 / full;
  return fail(Code::kDataLoss,
              "'{}' has float samples of up to {:.4g}, where full scale is 1; divide them, or write integers", name,
              peak_);
}

}  // namespace syrinx
