#include "kernels/block_exponentials.h"

#include <algorithm>
#include <limits>

#include "for_each_target.h"

namespace syrinx::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kLowest = std::numeric_limits<float>::lowest();

// Bound, relative: kExponentialError for each exponential of the same float argument, n roundings in double.
void expect_blocks(const float* x, size_t n, float temperature) {
  const float peak = *std::max_element(x, x + n);
  const size_t blocks = exponential_blocks(n);
  std::vector<double> sums(blocks + 1, -7.0);
  std::vector<float> maxima(blocks + 1, -7.0f);
  block_exponentials({x, n}, peak, temperature, {sums.data(), blocks}, {maxima.data(), blocks});
  for (size_t b = 0; b < blocks; ++b) {
    Expected want;
    float greatest = kLowest;
    for (size_t i = b * kExponentialBlock; i < std::min(n, (b + 1) * kExponentialBlock); ++i) {
      const float argument = (x[i] - peak) / temperature;
      if (argument >= kLeastExponent) want.add(std::exp(static_cast<double>(argument)));
      greatest = std::max(greatest, x[i]);
    }
    const double c = kExponentialError / FLT_EPSILON + sum_factor(kExponentialBlock) * (DBL_EPSILON / FLT_EPSILON);
    EXPECT_LE(std::abs(sums[b] - want.value), want.bound(c)) << b << " of " << n;
    EXPECT_EQ(maxima[b], greatest) << b << " of " << n;
  }
  EXPECT_EQ(sums[blocks], -7.0);
  EXPECT_EQ(maxima[blocks], -7.0f);
}

TEST(BlockExponentials, EveryLengthAndAlignment) {
  for_each_target([] {
    for (const size_t n : edge_sizes()) {
      for (size_t offset = 0; offset < 3; ++offset) {
        const TestValues x(n, static_cast<uint32_t>(n), Fill::kNormal, 5.0f, offset);
        for (const float temperature : {0.1f, 0.8f, 1.0f, 3.0f}) expect_blocks(x.data(), n, temperature);
      }
    }
  });
}

TEST(BlockExponentials, ExtremeValues) {
  for_each_target([] {
    for (const size_t n : edge_sizes()) {
      const TestValues large(n, 1, Fill::kLarge), denormal(n, 2, Fill::kDenormal), equal(n, 3, Fill::kZeros);
      for (const float temperature : {1e-30f, 1.0f, 1e30f}) {
        expect_blocks(large.data(), n, temperature);
        expect_blocks(denormal.data(), n, temperature);
        expect_blocks(equal.data(), n, temperature);
      }
      std::vector<float> x(n, -kInfinity);
      x[n / 2] = 3.0f;
      expect_blocks(x.data(), n, 0.5f);
      x[n - 1] = kLowest;
      expect_blocks(x.data(), n, 0.5f);
      for (size_t i = 0; i < n; ++i) x[i] = -104.0f + static_cast<float>(i);
      expect_blocks(x.data(), n, 1.0f);
    }
  });
}

}  // namespace
}  // namespace syrinx::kernels
