// The tokens drawn are those of the definition: the weight of a token is std::exp((logit - peak) / temperature) in
// float, sums are in double and in the order of tokens.  The kernel's sums of blocks, whose error has a bound, only say
// where to look and how certain a choice is.  A choice within the bound is made anew from all weights.
#include "nn/sampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/rng.h"
#include "kernels/argmax.h"
#include "kernels/block_exponentials.h"

namespace syrinx::nn {
namespace {

constexpr float kLowest = std::numeric_limits<float>::lowest();
// How far a sum of blocks and the sum of its weights by std::exp are apart, relative: the kernel's error, one unit of
// the last place for std::exp, half a unit for the additions and for the weights of exp(-80) that the kernel leaves
// out.
constexpr double kSumError = kernels::kExponentialError + 1.5 * 0x1p-23;

float weight_of(float logit, float peak, float temperature) { return std::exp((logit - peak) / temperature); }

// No logit below it has a weight of exp(exponent) or more; minus infinity is below it.  Roundings of the weight are
// worth less than the 1, also where it is denormal.
float logit_bound(float peak, float temperature, double exponent) {
  const double bound = peak + static_cast<double>(temperature) * (exponent - 1);
  return bound <= kLowest ? kLowest : std::nextafter(static_cast<float>(bound), kLowest);
}

// Counted from 1; orders the values anew.
float nth_largest(std::span<float> values, size_t n) {
  const auto nth = values.begin() + static_cast<ptrdiff_t>(n - 1);
  std::nth_element(values.begin(), nth, values.end(), std::greater<>());
  return *nth;
}

// Bins of weights up to 1: eighths of powers of two.
constexpr int kBinShift = 20;
constexpr size_t kWeightBins = (std::bit_cast<uint32_t>(1.0f) >> kBinShift) + 1;
size_t bin_of(float weight) { return std::bit_cast<uint32_t>(weight) >> kBinShift; }

}  // namespace

float draw_uniform(const DrawPlace& place) {
  const auto words = philox4x32({place.codebook, place.frame, place.stream, kSamplerWord},
                                {static_cast<uint32_t>(place.seed), static_cast<uint32_t>(place.seed >> 32)});
  return static_cast<float>(words[0] >> 8) * 0x1p-24f;
}

Sampler::Sampler(size_t vocabulary)
    : sorted_(vocabulary),
      seen_(vocabulary),
      candidates_(vocabulary),
      sums_(kernels::exponential_blocks(vocabulary)),
      maxima_(kernels::exponential_blocks(vocabulary)) {}

template <class Predicate>
void Sampler::keep(const Predicate& is_kept) {
  size_t kept = 0;
  for (size_t i = 0; i < count_; ++i) {
    const Candidate c = candidates_[i];
    candidates_[kept] = c;
    kept += is_kept(c) ? 1 : 0;
  }
  count_ = kept;
}

int32_t Sampler::draw(std::span<float> logits, const SamplerSettings& settings, std::span<const int32_t> seen,
                      const DrawPlace& place) {
  SYRINX_CHECK(logits.size() == seen_.size(), "{} logits of a vocabulary of {}", logits.size(), seen_.size());
  if (settings.penalty != 1.0f) penalise(logits, settings.penalty, seen);
  const auto [peak, likeliest] = kernels::argmax(logits);
  if (!std::isfinite(peak) || !std::isfinite(settings.temperature)) return kNone;
  if (settings.temperature <= 0.0f) return static_cast<int32_t>(likeliest);
  kernels::block_exponentials(logits, peak, settings.temperature, sums_, maxima_);
  const double uniform = draw_uniform(place);
  const bool takes_all = settings.top_k == 0 || settings.top_k >= logits.size();
  if (takes_all && !(settings.top_p < 1.0f) && !(settings.min_p > 0.0f)) {
    const int32_t token = draw_by_blocks(logits, settings, peak, uniform);
    if (token != kNone) return token;
  }
  take_candidates(logits, settings, peak);
  double total = 0;
  for (const Candidate& c : candidates()) total += c.weight;
  double left = total * uniform;
  for (const Candidate& c : candidates()) {
    left -= c.weight;
    if (left < 0) return c.token;
  }
  return candidates().back().token;
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

// The token at which the sum of weights passes its part of the total, or kNone where that is within the error of sums.
// A prefix P and the rest S - P are each off by kSumError at most, so P - u S = (1 - u) P - u (S - P) is by half of
// kSumError S where it is zero, and nowhere nears a bound of kSumError S.
int32_t Sampler::draw_by_blocks(std::span<const float> logits, const SamplerSettings& settings, float peak,
                                double uniform) {
  const double total = std::accumulate(sums_.begin(), sums_.end(), 0.0);
  const double wanted = total * uniform, error = total * kSumError;
  size_t block = 0;
  double passed = 0;
  for (; block + 1 < sums_.size() && passed + sums_[block] <= wanted; ++block) passed += sums_[block];
  const size_t begin = block * kernels::kExponentialBlock;
  for (size_t i = begin; i < std::min(begin + kernels::kExponentialBlock, logits.size()); ++i) {
    const double before = passed;
    passed += weight_of(logits[i], peak, settings.temperature);
    if (passed > wanted) return before + error <= wanted && passed - error > wanted ? static_cast<int32_t>(i) : kNone;
  }
  return kNone;
}

void Sampler::take_candidates(std::span<const float> logits, const SamplerSettings& settings, float peak) {
  const bool cuts_tail = settings.top_p < 1.0f;
  const float least_weight = settings.min_p > 0.0f ? std::min(settings.min_p, 1.0f) : 0.0f;
  if (settings.top_k > 0 && settings.top_k < logits.size()) {
    take_largest(logits, settings.top_k);
    const double total = weigh(peak, settings.temperature);
    if (cuts_tail) cut_tail({total * settings.top_p, total * settings.top_p}, 0);
  } else if (cuts_tail) {
    take_likely(logits, settings, peak);
  } else {
    const double exponent = std::log(static_cast<double>(least_weight));  // minus infinity for none
    gather(logits, logit_bound(peak, settings.temperature, exponent));
    weigh(peak, settings.temperature);
  }
  // The likeliest one has the weight 1.
  if (least_weight > 0.0f) keep([&](const Candidate& c) { return c.weight >= least_weight; });
}

// So many logits are no less than the least of so many maxima of blocks.
void Sampler::take_largest(std::span<const float> logits, size_t count) {
  auto end = std::copy(maxima_.begin(), maxima_.end(), sorted_.begin());
  gather(logits, nth_largest({sorted_.begin(), end}, std::min(count, maxima_.size())));
  if (count_ < count) gather(logits, kLowest);
  if (count_ <= count) return;
  end = std::transform(candidates().begin(), candidates().end(), sorted_.begin(),
                       [](const Candidate& c) { return c.logit; });
  const float least = nth_largest({sorted_.begin(), end}, count);
  keep([&](const Candidate& c) { return c.logit >= least; });
}

// Tokens above a bound are few, and mostly enough for top-p; else the bound is lowered, at last to take in all.
void Sampler::take_likely(std::span<const float> logits, const SamplerSettings& settings, float peak) {
  const double about = std::accumulate(sums_.begin(), sums_.end(), 0.0) * settings.top_p;
  for (const double exponent : {-3.0, -6.0, -9.0, -12.0}) {
    gather(logits, logit_bound(peak, settings.temperature, exponent));
    weigh(peak, settings.temperature);
    if (cut_tail({about * (1 - kSumError), about * (1 + kSumError)}, std::exp(exponent))) return;
  }
  gather(logits, kLowest);
  const double total = weigh(peak, settings.temperature);
  cut_tail({total * settings.top_p, total * settings.top_p}, 0);
}

void Sampler::gather(std::span<const float> logits, float least) {
  count_ = 0;
  for (size_t block = 0; block < maxima_.size(); ++block) {
    if (maxima_[block] < least) continue;
    const size_t begin = block * kernels::kExponentialBlock;
    // Without a branch that depends on a logit: it would be foreseen wrongly too often.
    for (size_t i = begin; i < std::min(begin + kernels::kExponentialBlock, logits.size()); ++i) {
      candidates_[count_] = {.logit = logits[i], .token = static_cast<int32_t>(i)};
      count_ += logits[i] >= least ? 1 : 0;
    }
  }
}

// The sum of the weights.
double Sampler::weigh(float peak, float temperature) {
  double total = 0;
  for (Candidate& c : candidates()) {
    c.weight = weight_of(c.logit, peak, temperature);
    total += c.weight;
  }
  return total;
}

// Keeps the fewest likeliest candidates that reach `wanted` together; of equal weights the lower tokens.  Nothing is
// cut and false returned where its two bounds ask for different numbers of them, or where the last is of less weight
// than `known_weight`, below which there may be others.  The last one is found by sums over eighths of powers of two,
// then by halves: a sort of a whole vocabulary takes as long as a step of a small model.
bool Sampler::cut_tail(Range wanted, double known_weight) {
  std::array<double, kWeightBins> sums{};
  for (const Candidate& c : candidates()) sums[bin_of(c.weight)] += c.weight;
  size_t bin = kWeightBins - 1;
  double passed = 0;  // by those that are surely kept
  for (; bin > 0 && passed + sums[bin] < wanted.least; --bin) passed += sums[bin];
  const auto begin = sorted_.begin();
  auto first = begin, last = begin;
  for (const Candidate& c : candidates()) {
    *last = c.weight;
    last += bin_of(c.weight) == bin ? 1 : 0;
  }
  while (last - first > 1) {
    const auto middle = first + (last - first) / 2;
    std::nth_element(first, middle, last, std::greater<>());
    const double reached = std::accumulate(first, middle, passed);
    if (reached >= wanted.least) {
      last = middle;
    } else {
      first = middle;
      passed = reached;
    }
  }
  if (last == first) return wanted.least == wanted.most;  // all together do not reach it
  const float least = *first;
  if (least < known_weight || (wanted.least < wanted.most && passed + least < wanted.most)) return false;
  auto equal = 1 + std::count(begin, first, least);  // so many of this weight are kept
  keep([&](const Candidate& c) { return c.weight > least || (c.weight == least && equal-- > 0); });
  return true;
}

}  // namespace syrinx::nn
