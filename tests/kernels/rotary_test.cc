#include "kernels/rotary.h"

#include "for_each_target.h"

namespace syrinx::kernels {
namespace {

// torch.exp(arange(D / 2) * (-ln(period) * 2 / D)) in f32: the factor, the product and the result are rounded.
TEST(Rotary, FrequenciesAreRoundedAsTheMakers) {
  double furthest = 0;
  for (const size_t pairs : {1, 3, 4, 16, 32}) {
    std::vector<float> theta(pairs);
    rotary_frequencies(10000.0f, theta);
    for (size_t i = 0; i < pairs; ++i) {
      const auto factor = static_cast<float>(-std::log(10000.0) * 2 / (2 * static_cast<double>(pairs)));
      const volatile float exponent = static_cast<float>(i) * factor;
      EXPECT_LE(ulps(theta[i], std::exp(static_cast<double>(exponent))), 0.51) << i << " of " << pairs;
      const double power = std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(pairs));
      EXPECT_NEAR(theta[i], power, 1e-6 * power) << i << " of " << pairs;
      furthest = std::max(furthest, 2000 * std::abs(theta[i] - power));
    }
  }
  EXPECT_GT(furthest, 1e-5);  // rad: it matters which of the two is computed
  EXPECT_LT(furthest, 1e-4);
}

TEST(Rotary, AnglesMatchTheTwin) {
  for_each_target([] {
    for (const size_t pairs : {1, 3, 4, 8, 16, 32, 33}) {
      std::vector<float> theta(pairs), cosines(5 * (pairs + 1), 7.0f), sines = cosines;
      rotary_frequencies(10000.0f, theta);
      for (const size_t first : {0, 1, 249, 4095}) {
        rotary_angles(theta, first, {cosines.data(), {5, pairs}, {pairs + 1, 1}},
                      {sines.data(), {5, pairs}, {pairs + 1, 1}});
        for (size_t n = 0; n < 5; ++n) {
          for (size_t i = 0; i < pairs; ++i) {
            const double angle = static_cast<float>(first + n) * theta[i];  // rounded to f32, as is stated
            ASSERT_NEAR(cosines[n * (pairs + 1) + i], std::cos(angle), 1.5e-7) << first + n << ", pair " << i;
            ASSERT_NEAR(sines[n * (pairs + 1) + i], std::sin(angle), 1.5e-7) << first + n << ", pair " << i;
          }
          ASSERT_EQ(cosines[n * (pairs + 1) + pairs], 7.0f);
        }
      }
    }
  });
}

// Two products and a sum, each rounded by itself: the twin is exact.
TEST(Rotary, TurnsEveryPairOfEveryHead) {
  for_each_target([] {
    for (const size_t pairs : {1, 2, 3, 4, 5, 8, 15, 16, 17, 32}) {
      for (const Fill fill : {Fill::kNormal, Fill::kZeros, Fill::kDenormal, Fill::kLarge}) {
        constexpr size_t kRows = 3, kHeads = 2;
        const size_t columns = kHeads * 2 * pairs, stride = columns + 3;
        TestValues x(kRows * stride, static_cast<uint32_t>(pairs), fill);
        const TestValues cosines(kRows * pairs, 5), sines(kRows * pairs, 6), before = x;
        rotary({cosines.data(), {kRows, pairs}}, {sines.data(), {kRows, pairs}},
               {x.data(), {kRows, columns}, {stride, 1}});
        for (size_t n = 0; n < kRows; ++n) {
          for (size_t column = 0; column < columns; column += 2) {
            const size_t at = n * stride + column, pair = n * pairs + column / 2 % pairs;
            const volatile float ac = before[at] * cosines[pair], bs = before[at + 1] * sines[pair];
            const volatile float as = before[at] * sines[pair], bc = before[at + 1] * cosines[pair];
            ASSERT_EQ(x[at], ac - bs) << "row " << n << " column " << column << " of " << pairs << " pairs";
            ASSERT_EQ(x[at + 1], as + bc) << "row " << n << " column " << column << " of " << pairs << " pairs";
          }
          for (size_t column = columns; column < stride; ++column)
            ASSERT_EQ(x[n * stride + column], before[n * stride + column]);
        }
      }
    }
  });
}

}  // namespace
}  // namespace syrinx::kernels
