#include "nn/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "allocation_count.h"
#include "base/rng.h"

namespace syrinx::nn {
namespace {

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
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
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
