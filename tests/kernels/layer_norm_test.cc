#include "kernels/layer_norm.h"

#include "for_each_target.h"

namespace syrinx::kernels {
namespace {

struct Case {
  size_t rows, channels, stride;
  Fill fill;
  float offset;  // added to every input value
  float epsilon;
};

// One row in double.  The bound: the float mean is off by delta = c eps mean|x|, which moves every difference by as
// much and the variance by its square; everything else is rounded relatively.
std::vector<Expected> norm_twin(const std::vector<double>& x, const float* gamma, const float* beta,
                                double gamma_offset, double epsilon) {
  const double n = static_cast<double>(x.size());
  double mean = 0, magnitude = 0, variance = 0;
  for (const double v : x) mean += v / n, magnitude += std::abs(v) / n;
  for (const double v : x) variance += (v - mean) * (v - mean) / n;
  const double scale = 1.0 / std::sqrt(variance + epsilon);
  const double delta = sum_factor(x.size()) * FLT_EPSILON * magnitude * scale;
  std::vector<Expected> out(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double g = gamma != nullptr ? gamma[i] + gamma_offset : 1.0, b = beta != nullptr ? beta[i] : 0.0;
    const double normed = (x[i] - mean) * scale;
    out[i].value = g * normed + b;
    out[i].magnitude = std::abs(g) * (scale * (std::abs(x[i]) + magnitude) + std::abs(normed)) + std::abs(b) +
                       std::abs(g * normed) * delta * delta / FLT_EPSILON;
  }
  return out;
}

void expect_rows(const Case& c, const std::vector<double>& x, const float* gamma, const float* beta,
                 double gamma_offset, const View<float, 2>& out) {
  for (size_t t = 0; t < c.rows; ++t) {
    const std::vector<double> row(x.begin() + t * c.channels, x.begin() + (t + 1) * c.channels);
    const std::vector<Expected> want = norm_twin(row, gamma, beta, gamma_offset, c.epsilon);
    for (size_t i = 0; i < c.channels; ++i) {
      ASSERT_TRUE(within(want[i], sum_factor(c.channels), out(t, i)))
          << "row " << t << " channel " << i << " of " << c.channels;
    }
  }
}

void run_case(const Case& c) {
  const uint32_t seed = static_cast<uint32_t>(c.channels);
  TestValues a(c.rows * c.stride, seed, c.fill), b(c.rows * c.stride, seed + 1, c.fill);
  for (size_t i = 0; i < a.size(); ++i) a[i] += c.offset;
  const TestValues gamma(c.channels, seed + 2), beta(c.channels, seed + 3);
  TestValues out(c.rows * c.stride, seed + 4);
  const View<const float, 2> av(a.data(), {c.rows, c.channels}, {c.stride, 1});
  const View<const float, 2> bv(b.data(), {c.rows, c.channels}, {c.stride, 1});
  const View<float, 2> ov(out.data(), {c.rows, c.channels}, {c.stride, 1});
  std::vector<double> single, sum;
  for (size_t t = 0; t < c.rows; ++t) {
    for (size_t i = 0; i < c.channels; ++i) {
      single.push_back(av(t, i));
      sum.push_back(static_cast<double>(av(t, i) + bv(t, i)));
    }
  }
  const float behind = out[c.channels];
  layer_norm(av, {}, c.epsilon, ov);
  expect_rows(c, single, nullptr, nullptr, 0.0, ov);
  layer_norm(av, {gamma.data(), beta.data()}, c.epsilon, ov);
  expect_rows(c, single, gamma.data(), beta.data(), 0.0, ov);
  adaptive_layer_norm(av, gamma.data(), beta.data(), c.epsilon, ov);
  expect_rows(c, single, gamma.data(), beta.data(), 1.0, ov);
  add_layer_norm(av, bv, {gamma.data(), beta.data()}, c.epsilon, ov);
  expect_rows(c, sum, gamma.data(), beta.data(), 0.0, ov);
  if (c.stride > c.channels) {
    EXPECT_EQ(out[c.channels], behind);
  }
  const View<float, 2> in_place(a.data(), {c.rows, c.channels}, {c.stride, 1});
  add_layer_norm(in_place, bv, {gamma.data(), nullptr}, c.epsilon, in_place);
  expect_rows(c, sum, gamma.data(), nullptr, 0.0, in_place);
}

TEST(LayerNorm, SmallShapesAndTheModels) {
  for_each_target([] {
    for (const size_t channels : edge_sizes()) run_case({3, channels, channels + 3, Fill::kNormal, 0.0f, 1e-5f});
    for (const size_t channels : {128, 512, 768}) run_case({5, channels, channels, Fill::kNormal, 0.0f, 1e-12f});
  });
}

TEST(LayerNorm, ZerosDenormalsLargeValuesAndOffsets) {
  for_each_target([] {
    for (const size_t channels : {1, 7, 64, 513}) {
      run_case({2, channels, channels, Fill::kZeros, 0.0f, 1e-12f});
      run_case({2, channels, channels, Fill::kZeros, 3.0f, 1e-5f});
      run_case({2, channels, channels, Fill::kDenormal, 0.0f, 1e-5f});
      run_case({2, channels, channels, Fill::kLarge, 0.0f, 1e-5f});
      run_case({2, channels, channels, Fill::kNormal, 1000.0f, 1e-5f});
    }
  });
}

}  // namespace
}  // namespace syrinx::kernels
