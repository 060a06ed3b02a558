#include "kernels/activation.h"

#include <numbers>

#include "for_each_target.h"

namespace syrinx::kernels {
namespace {

double gelu_twin(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

TEST(Activation, GeluMatchesTheTwin) {
  for_each_target([] {
    for (const size_t n : edge_sizes()) {
      for (const float scale : {1e-3f, 1.0f, 5.0f, 100.0f}) {
        TestValues x(n, static_cast<uint32_t>(n), Fill::kNormal, scale);
        std::vector<float> out(n);
        gelu_tanh({x.data(), n}, out);
        for (size_t i = 0; i < n; ++i) ASSERT_NEAR(out[i], gelu_twin(x[i]), 1e-6 * std::abs(x[i]) + FLT_MIN) << x[i];
      }
    }
  });
}

TEST(Activation, GeluOfZerosDenormalsAndLargeValues) {
  for_each_target([] {
    std::vector<float> x = {0.0f, 1e-40f, -1e-40f, 1e10f, -1e10f, 1e15f, -1e15f};
    gelu_tanh(x, x);
    EXPECT_EQ(x[0], 0.0f);
    EXPECT_NEAR(x[1], 5e-41, FLT_MIN);
    EXPECT_EQ(x[3], 1e10f);
    EXPECT_EQ(x[4], 0.0f);
    EXPECT_EQ(x[5], 1e15f);
    EXPECT_EQ(x[6], 0.0f);
  });
}

TEST(Activation, SiluMatchesTheTwin) {
  for_each_target([] {
    for (const size_t n : edge_sizes()) {
      for (const float scale : {1e-3f, 1.0f, 5.0f, 100.0f}) {
        TestValues x(n, static_cast<uint32_t>(n), Fill::kNormal, scale);
        std::vector<float> out(n);
        silu({x.data(), n}, out);
        for (size_t i = 0; i < n; ++i) {
          const double twin = x[i] / (1.0 + std::exp(-static_cast<double>(x[i])));
          ASSERT_NEAR(out[i], twin, 1e-6 * std::abs(x[i]) + FLT_MIN) << x[i];
        }
      }
    }
    std::vector<float> x = {0.0f, 1e-40f, -1e-40f, 1e10f, -1e10f};
    silu(x, x);
    EXPECT_EQ(x[0], 0.0f);
    EXPECT_NEAR(x[1], 5e-41, FLT_MIN);
    EXPECT_EQ(x[3], 1e10f);
    EXPECT_EQ(x[4], 0.0f);
  });
}

TEST(Activation, GeluByItsDefinitionMatchesTheTwin) {
  for_each_target([] {
    for (const size_t n : edge_sizes()) {
      for (const float scale : {1e-3f, 1.0f, 5.0f, 100.0f}) {
        TestValues x(n, static_cast<uint32_t>(n), Fill::kNormal, scale);
        std::vector<float> out(n);
        gelu_erf({x.data(), n}, out);
        for (size_t i = 0; i < n; ++i) {
          const double twin = 0.5 * x[i] * std::erfc(-static_cast<double>(x[i]) / std::numbers::sqrt2);
          ASSERT_NEAR(out[i], twin, 1e-6 * std::abs(x[i]) + FLT_MIN) << x[i];
        }
      }
    }
    std::vector<float> ends = {0.0f, 1e15f, -1e15f, NAN};
    gelu_erf(ends, ends);
    EXPECT_EQ(ends[0], 0.0f);
    EXPECT_EQ(ends[1], 1e15f);
    EXPECT_EQ(ends[2], 0.0f);
    EXPECT_TRUE(std::isnan(ends[3]));
  });
}

TEST(Activation, EluKeepsAllDigitsOfSmallValues) {
  for_each_target([] {
    for (const size_t n : edge_sizes()) {
      for (const float scale : {1e-30f, 1e-6f, 1e-2f, 1.0f, 30.0f}) {
        TestValues x(n, static_cast<uint32_t>(n), Fill::kNormal, scale);
        std::vector<float> out(n);
        elu({x.data(), n}, out);
        for (size_t i = 0; i < n; ++i) {
          if (x[i] >= 0) {
            ASSERT_EQ(out[i], x[i]);
          } else {
            ASSERT_LE(ulps(out[i], std::expm1(static_cast<double>(x[i]))), 3.0) << x[i];
          }
        }
      }
    }
    std::vector<float> ends = {0.0f, -104.0f, -1e30f, -INFINITY, INFINITY, NAN};
    elu(ends, ends);
    EXPECT_EQ(ends[0], 0.0f);
    for (const size_t i : {1, 2, 3}) EXPECT_EQ(ends[i], -1.0f);
    EXPECT_EQ(ends[4], INFINITY);
    EXPECT_TRUE(std::isnan(ends[5]));
  });
}

TEST(Activation, LeakyReluIsExact) {
  for_each_target([] {
    for (const size_t n : edge_sizes()) {
      for (const Fill fill : {Fill::kNormal, Fill::kZeros, Fill::kDenormal, Fill::kLarge}) {
        for (const float slope : {0.0f, 0.01f, 0.1f, 0.2f, 1.0f}) {
          TestValues x(n, static_cast<uint32_t>(n), fill);
          const TestValues before = x;
          leaky_relu({x.data(), n}, slope, {x.data(), n});
          for (size_t i = 0; i < n; ++i) ASSERT_EQ(x[i], before[i] < 0 ? before[i] * slope : before[i]);
        }
      }
    }
  });
}

}  // namespace
}  // namespace syrinx::kernels
