#include "nn/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "allocation_count.h"
#include "base/rng.h"
#include "kernels/vector_math.h"

namespace syrinx::nn {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 2.0f);
  std::vector<float> logits(count);
  for (float& logit : logits) logit = std::round(normal(random) * 8) / 8;  // some are equal
  return logits;
}

// The probability of each token, by the definition and in double.
std::vector<double> probabilities(std::vector<float> logits, const SamplerSettings& s, const std::set<int32_t>& seen) {
  for (const int32_t i : seen) {
    float& logit = logits[static_cast<size_t>(i)];
    logit = logit < 0 ? logit * s.penalty : logit / s.penalty;
  }
  std::vector<float> sorted = logits;
  std::sort(sorted.rbegin(), sorted.rend());
  const float least = s.top_k == 0 || s.top_k >= sorted.size() ? sorted.back() : sorted[s.top_k - 1];
  std::vector<double> p(logits.size());
  double total = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (logits[i] >= least) p[i] = std::exp((static_cast<double>(logits[i]) - sorted[0]) / s.temperature);
    total += p[i];
  }
  std::vector<size_t> order(p.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] > p[b]; });
  const double likeliest = p[order[0]];
  double reached = 0, kept = 0;
  for (size_t n = 0; n < order.size(); ++n) {
    if (n > 0 && s.top_p < 1 && reached >= total * s.top_p) p[order[n]] = 0;
    reached += p[order[n]];
    if (p[order[n]] < std::min(1.0, static_cast<double>(s.min_p)) * likeliest) p[order[n]] = 0;
    kept += p[order[n]];
  }
  for (double& value : p) value /= kept;
  return p;
}

// The token on whose share of [0, 1) the place's random number falls, by the definition.
int32_t twin_draw(const std::vector<double>& p, const DrawPlace& place) {
  const auto words = philox4x32({place.codebook, place.frame, place.stream, kSamplerWord},
                                {static_cast<uint32_t>(place.seed), static_cast<uint32_t>(place.seed >> 32)});
  const double u = static_cast<double>(words[0] >> 8) / 16777216.0;
  double reached = 0;
  int32_t last = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0) continue;
    reached += p[i];
    last = static_cast<int32_t>(i);
    if (u < reached) break;
  }
  return last;
}

constexpr SamplerSettings kSettings[] = {{},
                                         {.temperature = 0.9f, .top_k = 50},
                                         {.temperature = 0.7f, .top_p = 0.9f},
                                         {.temperature = 1.3f, .top_k = 20, .top_p = 0.5f, .penalty = 1.05f},
                                         {.top_k = 1},
                                         {.top_p = 0.0f},
                                         {.min_p = 0.1f},
                                         {.temperature = 1.5f, .top_p = 0.95f, .min_p = 0.02f},
                                         {.temperature = 0.5f, .top_k = 30, .min_p = 2.0f},
                                         {.temperature = 0.1f, .top_p = 0.999f},
                                         {.temperature = 0.8f, .top_k = 1000, .penalty = 1.5f}};

// The token by the definition, with the weights and the order of sums that sampler.cc names.
int32_t plain_draw(std::vector<float> logits, const SamplerSettings& s, const DrawPlace& place) {
  const float peak = *std::max_element(logits.begin(), logits.end());
  float least = std::numeric_limits<float>::lowest();
  if (s.top_k > 0 && s.top_k < logits.size()) {
    std::vector<float> sorted = logits;
    std::sort(sorted.rbegin(), sorted.rend());
    least = std::max(least, sorted[s.top_k - 1]);
  }
  std::vector<std::pair<float, int32_t>> kept;  // weights and tokens
  double total = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] < least) continue;
    kept.emplace_back(std::exp((logits[i] - peak) / s.temperature), static_cast<int32_t>(i));
    total += kept.back().first;
  }
  if (s.top_p < 1) {
    std::stable_sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    size_t count = 0;
    for (double reached = 0; count < kept.size() && (count == 0 || reached < total * s.top_p); ++count)
      reached += kept[count].first;
    kept.resize(count);
    std::sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  }
  std::erase_if(kept, [&](const auto& one) { return one.first < std::min(s.min_p, 1.0f); });
  double left = 0;
  for (const auto& [weight, token] : kept) left += weight;
  left *= static_cast<double>(draw_uniform(place));
  for (const auto& [weight, token] : kept)
    if ((left -= weight) < 0) return token;
  return kept.back().second;
}

void expect_plain_draws(const std::vector<float>& logits, const SamplerSettings& s, uint32_t draws) {
  Sampler sampler(logits.size());
  for (uint32_t frame = 0; frame < draws; ++frame) {
    const DrawPlace place{.seed = logits.size(), .frame = frame};
    std::vector<float> own = logits;
    ASSERT_EQ(sampler.draw(own, s, {}, place), plain_draw(logits, s, place))
        << logits.size() << " logits, temperature " << s.temperature << " top_k " << s.top_k << " top_p " << s.top_p
        << " min_p " << s.min_p << " frame " << frame;
  }
}

// Each shape takes other shortcuts.
std::vector<std::vector<float>> shaped_logits(size_t count) {
  std::vector<float> equal(count, 2.5f), forbidden(count, -kInfinity), ramp(count), steep(count), close(count);
  const std::vector<float> normal = random_logits(count, 7);
  for (size_t i = 0; i < count; ++i) {
    const auto place = static_cast<float>((i * 7919) % count) / static_cast<float>(count);
    ramp[i] = -110 * place;  // down to denormal weights and zero
    steep[i] = normal[i] * 1e30f;
    close[i] = 1000 + normal[i] / 1024;
    if (i % 100 == 1) forbidden[i] = normal[i];
  }
  forbidden[count / 2] = 1.0f;
  return {normal, equal, forbidden, ramp, steep, close};
}

// Where the kernel's exponential and std::exp are furthest apart.
float least_like_kernel() {
  std::vector<float> x(20000), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = -1e-4f * static_cast<float>(i);
  kernels::exp_array(x, y);
  size_t worst = 0;
  const auto distance = [&](size_t i) { return std::abs(y[i] / std::exp(x[i]) - 1.0f); };
  for (size_t i = 1; i < x.size(); ++i) worst = distance(i) > distance(worst) ? i : worst;
  return x[worst];
}

TEST(Sampler, ShortcutsDrawDefinedTokens) {
  for (const size_t count : {1u, 2u, 63u, 64u, 65u, 1000u, 3072u}) {
    for (const std::vector<float>& logits : shaped_logits(count)) {
      for (const float temperature : {1e-40f, 1e-6f, 0.2f, 0.8f, 1.0f, 30.0f}) {
        for (const float top_p : {-1.0f, 0.0f, 0.5f, 0.9f, 0.99999994f, 1.0f}) {
          for (const size_t top_k : {0u, 1u, 16u, 48u, 49u, 3071u}) {
            expect_plain_draws(logits, {.temperature = temperature, .top_k = top_k, .top_p = top_p}, 1);
          }
          for (const float min_p : {std::numeric_limits<float>::denorm_min(), 1e-30f, 0.05f, std::exp(-1.0f)})
            expect_plain_draws(logits, {.temperature = temperature, .top_p = top_p, .min_p = min_p}, 1);
        }
      }
    }
  }
}

TEST(Sampler, LargeVocabulariesDrawDefinedTokens) {
  for (const size_t count : {49152u, 151936u}) {
    std::vector<float> logits = random_logits(count, 11);
    logits[count / 3] = logits[count - 5] = 14;
    for (const SamplerSettings& settings : kSettings) {
      SamplerSettings free = settings;
      free.penalty = 1.0f;
      expect_plain_draws(logits, free, 3);
    }
  }
}

// Shares of 2^-16 and numbers in steps of 2^-24: one draw in 256 falls on a border, some more within the error of sums.
TEST(Sampler, BordersOfEqualShares) {
  const std::vector<float> logits(65536, 1.0f);
  expect_plain_draws(logits, {}, 500);
  expect_plain_draws(logits, {.top_p = 0.5f}, 10);
  Sampler sampler(4);
  for (uint32_t frame = 0; frame < 100; ++frame) {
    std::vector<float> four(4, -3.0f);
    EXPECT_LT(sampler.draw(four, {.top_p = 0.5f}, {}, {.frame = frame}), 2) << "two reach the half exactly";
  }
}

// The kernel's weights of the second half all are off to one side: by a hundredth of a share at the end.
TEST(Sampler, BordersOfInexactShares) {
  constexpr size_t kCount = 262144;
  std::vector<float> logits(kCount, 0.0f);
  const float lower = least_like_kernel();
  std::fill(logits.begin() + kCount / 2, logits.end(), lower);
  std::vector<double> borders(kCount);
  double total = 0;
  for (size_t i = 0; i < kCount; ++i) borders[i] = total += std::exp(logits[i]);
  Sampler sampler(kCount);
  for (uint32_t frame = 0; frame < 1000; ++frame) {
    std::vector<float> own = logits;
    const double passed = total * static_cast<double>(draw_uniform({.frame = frame}));
    const auto token = std::upper_bound(borders.begin(), borders.end(), passed) - borders.begin();
    ASSERT_EQ(sampler.draw(own, {}, {}, {.frame = frame}), token) << lower << " frame " << frame;
  }
}

// Logits about zero are 64 below the peak when rounded: their weights are equal, on both sides of a bound of logits.
TEST(Sampler, EqualWeightsKeepLowerTokens) {
  std::vector<float> logits(200, -kInfinity);
  logits[10] = -1e-8f;
  logits[20] = 0.0f;
  logits[30] = 64.0f;
  for (const float divisions : {3.0f, 4.0f, 7.0f, 10.0f, 13.0f}) {
    const double weight = std::exp(-static_cast<double>(divisions));
    const auto top_p = static_cast<float>((1 + weight / 2) / (1 + 2 * weight));
    const SamplerSettings settings{.temperature = 64.0f / divisions, .top_p = top_p};
    Sampler sampler(logits.size());
    for (uint32_t frame = 0; frame < 500; ++frame) {
      std::vector<float> own = logits;
      EXPECT_NE(sampler.draw(own, settings, {}, {.frame = frame}), 20) << divisions;
    }
    expect_plain_draws(logits, settings, 500);
  }
}

TEST(Sampler, DrawsMatchTwin) {
  constexpr size_t kVocabulary = 200;
  Sampler sampler(kVocabulary);
  const std::vector<int32_t> seen = {3, 7, 3, 199, 7};
  size_t off = 0, draws = 0;
  for (const SamplerSettings& settings : kSettings) {
    for (uint32_t frame = 0; frame < 500; ++frame, ++draws) {
      std::vector<float> logits = random_logits(kVocabulary, frame);
      const DrawPlace place{.seed = 0x123456789ABCDEFull, .stream = 2, .frame = frame, .codebook = 5};
      const std::vector<double> p = probabilities(logits, settings, {seen.begin(), seen.end()});
      const int32_t token = sampler.draw(logits, settings, seen, place);
      ASSERT_GT(p[static_cast<size_t>(token)], 0) << "a token that is cut off";
      off += token != twin_draw(p, place) ? 1 : 0;
    }
  }
  // A number that falls within 1e-5 of the border of two of some 200 shares may go either way.
  EXPECT_LE(off, 2u) << "of " << draws;
}

TEST(Sampler, FrequenciesMatchProbabilities) {
  constexpr size_t kVocabulary = 12, kDraws = 20000;
  Sampler sampler(kVocabulary);
  const std::vector<float> logits = random_logits(kVocabulary, 1);
  const SamplerSettings settings{.temperature = 1.5f, .top_k = 8};
  const std::vector<double> p = probabilities(logits, settings, {});
  std::vector<size_t> counts(kVocabulary);
  for (uint32_t frame = 0; frame < kDraws; ++frame) {
    std::vector<float> own = logits;
    ++counts[static_cast<size_t>(sampler.draw(own, settings, {}, {.seed = 1, .frame = frame}))];
  }
  for (size_t i = 0; i < kVocabulary; ++i) {
    const double sigma = std::sqrt(kDraws * p[i] * (1 - p[i]));
    EXPECT_NEAR(static_cast<double>(counts[i]), kDraws * p[i], 5 * sigma) << i;
  }
}

TEST(Sampler, PlacesDrawIndependentNumbers) {
  std::set<float> numbers;
  for (const uint64_t seed : {1ull, 1ull << 32}) {
    for (uint32_t i = 0; i < 4; ++i) {
      numbers.insert(draw_uniform({.seed = seed, .stream = i + 1}));
      numbers.insert(draw_uniform({.seed = seed, .frame = i + 1}));
      numbers.insert(draw_uniform({.seed = seed, .codebook = i + 1}));
    }
  }
  EXPECT_EQ(numbers.size(), 24u);
  for (const float number : numbers) EXPECT_TRUE(number >= 0.0f && number < 1.0f);
}

TEST(Sampler, ZeroTemperatureTakesFirstOfLargest) {
  Sampler sampler(5);
  std::vector<float> logits = {1, 4, 2, 4, 0};
  EXPECT_EQ(sampler.draw(logits, {.temperature = 0}, {}, {}), 1);
  const std::vector<int32_t> seen = {1, 1};
  EXPECT_EQ(sampler.draw(logits, {.temperature = 0, .penalty = 2.0f}, seen, {}), 3);
  EXPECT_EQ(logits[1], 2.0f) << "a token seen twice is penalised once";
}

TEST(Sampler, ForbiddenAndFaultyLogitsAreToldApart) {
  Sampler sampler(4);
  for (uint32_t frame = 0; frame < 50; ++frame) {
    std::vector<float> logits = {-kInfinity, 1, -kInfinity, 1.5f};
    const int32_t token = sampler.draw(logits, {.temperature = 2.0f}, {}, {.frame = frame});
    EXPECT_TRUE(token == 1 || token == 3);
  }
  std::vector<float> none(4, -kInfinity), faulty = {0, NAN, 1, 2};
  EXPECT_EQ(sampler.draw(none, {}, {}, {}), Sampler::kNone);
  EXPECT_EQ(sampler.draw(faulty, {}, {}, {}), Sampler::kNone);
}

TEST(Sampler, DrawsAllocateNothing) {
  Sampler sampler(3072);
  std::vector<float> logits = random_logits(3072, 4);
  const size_t before = allocation_count();
  for (const SamplerSettings& settings : kSettings) sampler.draw(logits, settings, {}, {});
  EXPECT_EQ(allocation_count() - before, 0u);
}

}  // namespace
}  // namespace syrinx::nn
