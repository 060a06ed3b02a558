#include "audio/resample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <numeric>
#include <random>

namespace syrinx {
namespace {

// The definition, term by term in double.
std::vector<double> twin(const std::vector<float>& x, int from_hz, int to_hz) {
  const int64_t common = std::gcd(from_hz, to_hz), up = to_hz / common, down = from_hz / common;
  const int64_t longest = std::max(up, down), half = 10 * longest;
  std::vector<double> h;
  for (int64_t k = -half; k <= half; ++k) {
    const double angle = std::numbers::pi * static_cast<double>(k) / static_cast<double>(longest);
    const double place = static_cast<double>(k) / static_cast<double>(half);
    h.push_back((k == 0 ? 1 : std::sin(angle) / angle) * std::cyl_bessel_i(0, 5 * std::sqrt(1 - place * place)));
  }
  const double sum = std::accumulate(h.begin(), h.end(), 0.0);
  const int64_t size = static_cast<int64_t>(x.size());
  std::vector<double> y(static_cast<size_t>((size * up + down - 1) / down));
  for (size_t m = 0; m < y.size(); ++m) {
    for (int64_t n = 0; n < size; ++n) {
      const int64_t k = static_cast<int64_t>(m) * down - n * up;
      if (std::abs(k) <= half)
        y[m] += static_cast<double>(x[static_cast<size_t>(n)]) * h[static_cast<size_t>(k + half)];
    }
    y[m] *= static_cast<double>(up) / sum;
  }
  return y;
}

TEST(Resample, IsItsDefinition) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-1, 1);
  const std::pair<int, int> rates[] = {{8000, 24000},  {24000, 8000},  {44100, 24000}, {11025, 24000}, {24000, 44100},
                                       {96000, 24000}, {24001, 24000}, {1000, 48000},  {22050, 16000}};
  for (const auto& [from, to] : rates) {
    for (const size_t size : {size_t{1}, size_t{2}, size_t{19}, size_t{200}}) {
      std::vector<float> x(size);
      for (float& value : x) value = uniform(random);
      const auto got = resample(x, from, to);
      ASSERT_TRUE(got) << got.error().message;
      const std::vector<double> expected = twin(x, from, to);
      ASSERT_EQ(got->size(), expected.size());
      for (size_t m = 0; m < expected.size(); ++m)
        EXPECT_NEAR((*got)[m], expected[m], 1e-6) << from << " to " << to << ", sample " << m << " of " << size;
    }
  }
}

TEST(Resample, KeepsALowToneAndDropsAHighOne) {
  const auto tone = [](double hertz, int rate, size_t size) {
    std::vector<float> out(size);
    for (size_t i = 0; i < size; ++i)
      out[i] = static_cast<float>(std::sin(2 * std::numbers::pi * hertz * static_cast<double>(i) / rate));
    return out;
  };
  const auto low = resample(tone(1000, 48000, 4800), 48000, 24000);
  const std::vector<float> expected = tone(1000, 24000, 2400);
  ASSERT_TRUE(low);
  ASSERT_EQ(low->size(), expected.size());
  for (size_t i = 50; i + 50 < expected.size(); ++i) EXPECT_NEAR((*low)[i], expected[i], 2e-3) << i;
  const auto high = resample(tone(16000, 48000, 4800), 48000, 24000);  // would fold to 8 kHz
  ASSERT_TRUE(high);
  for (size_t i = 50; i + 50 < high->size(); ++i) EXPECT_NEAR((*high)[i], 0, 2e-3) << i;
}

TEST(Resample, LeavesEqualRatesAndNothingAlone) {
  EXPECT_EQ(*resample(std::vector<float>{1, 2, 3}, 16000, 16000), (std::vector<float>{1, 2, 3}));
  EXPECT_TRUE(resample({}, 16000, 24000)->empty());
  EXPECT_TRUE(resample({}, 16000, 16000)->empty());
}

TEST(Resample, RefusesRatesAndLengthsBeyondItsLimits) {
  const std::vector<float> sound(8);
  for (const auto& [from, to] : {std::pair(999, 24000), {24000, 384001}, {0, 24000}, {24000, -1}}) {
    const auto got = resample(sound, from, to);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, Code::kLimitExceeded);
  }
  const std::vector<float> longer((size_t{1} << 28) / 384 + 1);
  const auto got = resample(longer, 1000, 384000);
  ASSERT_FALSE(got);
  EXPECT_NE(got.error().message.find("is too long to be converted from 1000 to 384000 Hz"), std::string::npos);
}

}  // namespace
}  // namespace syrinx
