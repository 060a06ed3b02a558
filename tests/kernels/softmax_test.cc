#include "kernels/softmax.h"

#include <limits>

#include "for_each_target.h"

namespace syrinx::kernels {
namespace {

// Bound, relative: the exponent's argument is off by eps (|scale x| + |max|), the sum by n roundings, exp by 1.5 ulp.
void expect_softmax(const float* x, float scale, size_t n, const float* out) {
  double maximum = -std::numeric_limits<double>::infinity(), sum = 0;
  for (size_t i = 0; i < n; ++i) maximum = std::max(maximum, static_cast<double>(x[i]) * scale);
  for (size_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(x[i]) * scale - maximum);
  for (size_t i = 0; i < n; ++i) {
    const double argument = static_cast<double>(x[i]) * scale;
    Expected want;
    want.add(std::exp(argument - maximum) / sum);
    const double sensitivity = std::isfinite(argument) ? std::abs(argument) + std::abs(maximum) : 0.0;
    ASSERT_TRUE(within(want, 2 * sensitivity + 2 * sum_factor(n), out[i])) << i << " of " << n;
  }
}

TEST(Softmax, RowsOfEveryLength) {
  for_each_target([] {
    for (const size_t n : edge_sizes()) {
      for (const float scale : {0.125f, 1.0f, -0.5f}) {
        TestValues x(3 * (n + 2), static_cast<uint32_t>(n), Fill::kNormal, 4.0f);
        const TestValues before = x;
        const View<float, 2> view(x.data(), {3, n}, {n + 2, 1});
        softmax(view, scale, view);
        for (size_t t = 0; t < 3; ++t) {
          expect_softmax(before.data() + t * (n + 2), scale, n, view.row(t));
          EXPECT_EQ(x[t * (n + 2) + n], before[t * (n + 2) + n]);
        }
      }
    }
  });
}

TEST(Softmax, ExtremeValues) {
  for_each_target([] {
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<std::vector<float>> rows = {{0, 0, 0},
                                                  {1e30f, -1e30f, 0},
                                                  {1e-40f, -1e-40f, 0, 1},
                                                  {-infinity, 1, 2},
                                                  {88, 89, 90, 1000},
                                                  {-1000, -1001, -999},
                                                  {-infinity, 0, -infinity, 0, 0, 0, 0, 0, 5},
                                                  {7}};
    for (const std::vector<float>& row : rows) {
      std::vector<float> out(row.size());
      softmax(View<const float, 2>(row.data(), {1, row.size()}), 1.0f, View<float, 2>(out.data(), {1, row.size()}));
      expect_softmax(row.data(), 1.0f, row.size(), out.data());
    }
  });
}

}  // namespace
}  // namespace syrinx::kernels
