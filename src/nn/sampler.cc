#include "nn/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "base/check.h"
#include "base/rng.h"
#include "kernels/argmax.h"

namespace syrinx::nn {

float draw_uniform(const DrawPlace& place) {
  const auto words = philox4x32({place.codebook, place.frame, place.stream, kSamplerWord},
                                {static_cast<uint32_t>(place.seed), static_cast<uint32_t>(place.seed >> 32)});
  return static_cast<float>(words[0] >> 8) * 0x1p-24f;
}

Sampler::Sampler(size_t vocabulary) : sorted_(vocabulary), seen_(vocabulary) { candidates_.reserve(vocabulary); }

int32_t Sampler::draw(std::span<float> logits, const SamplerSettings& settings, std::span<const int32_t> seen,
                      const DrawPlace& place) {
  SYRINX_CHECK(logits.size() == seen_.size(), "{} logits of a vocabulary of {}", logits.size(), seen_.size());
  if (settings.penalty != 1.0f) penalise(logits, settings.penalty, seen);
  const kernels::Peak most = kernels::argmax(logits);
  if (!std::isfinite(most.value) || !std::isfinite(settings.temperature)) return kNone;
  if (settings.temperature <= 0.0f) return static_cast<int32_t>(most.index);
  select(logits, settings.top_k);
  for (Candidate& c : candidates_) c.weight = std::exp((c.logit - most.value) / settings.temperature);
  if (settings.top_p < 1.0f) cut_tail(settings.top_p);
  if (settings.min_p > 0.0f) {  // the likeliest one has the weight 1
    std::erase_if(candidates_, [&](const Candidate& c) { return c.weight < std::min(settings.min_p, 1.0f); });
  }
  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  double left = total * static_cast<double>(draw_uniform(place));
  for (const Candidate& c : candidates_) {
    left -= c.weight;
    if (left < 0) return c.token;
  }
  return candidates_.back().token;
}

void Sampler::penalise(std::span<float> logits, float penalty, std::span<const int32_t> seen) {
  for (const int32_t token : seen) {
    const auto i = static_cast<size_t>(token);
    SYRINX_CHECK(token >= 0 && i < logits.size(), "token {} of {}", token, logits.size());
    if (seen_[i] == 0) logits[i] = logits[i] < 0 ? logits[i] * penalty : logits[i] / penalty;
    seen_[i] = 1;
  }
  for (const int32_t token : seen) seen_[static_cast<size_t>(token)] = 0;
}

void Sampler::select(std::span<const float> logits, size_t top_k) {
  float least = std::numeric_limits<float>::lowest();
  if (top_k > 0 && top_k < logits.size()) {
    std::copy(logits.begin(), logits.end(), sorted_.begin());
    const auto last = sorted_.begin() + static_cast<ptrdiff_t>(top_k - 1);
    std::nth_element(sorted_.begin(), last, sorted_.end(), std::greater<>());
    least = std::max(least, *last);
  }
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] >= least) candidates_.push_back({.logit = logits[i], .token = static_cast<int32_t>(i)});
}

// Drops candidates of small weight, but none of the fewest likeliest ones that reach `weight` together: by sums over
// powers of two, since a sort of a whole vocabulary takes as long as a step of a small model.
void Sampler::keep_likely(double weight) {
  constexpr int kPowers = 64;  // weights are at most 1
  std::array<double, kPowers> sums{};
  const auto power_of = [](float w) { return w > 0.0f ? std::min(-std::ilogb(w), kPowers - 1) : kPowers - 1; };
  for (const Candidate& c : candidates_) sums[static_cast<size_t>(power_of(c.weight))] += c.weight;
  int last = 0;
  for (double reached = 0; last < kPowers - 1 && reached < weight; ++last) reached += sums[static_cast<size_t>(last)];
  // These sums are rounded in another order than those that decide, so one power more is kept.
  std::erase_if(candidates_, [&](const Candidate& c) { return power_of(c.weight) > last; });
}

// Equal weights: the lower tokens stay.
void Sampler::cut_tail(float top_p) {
  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  keep_likely(total * top_p);
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
  });
  size_t count = 0;
  for (double reached = 0; count < candidates_.size() && (count == 0 || reached < total * top_p); ++count)
    reached += candidates_[count].weight;
  candidates_.resize(count);
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return a.token < b.token; });
}

}  // namespace syrinx::nn
