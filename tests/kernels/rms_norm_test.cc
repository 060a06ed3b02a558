#include "kernels/rms_norm.h"

#include "for_each_target.h"

namespace syrinx::kernels {
namespace {

void expect_row(const float* x, const float* gamma, float epsilon, const float* out, size_t n) {
  double squares = 0;
  for (size_t i = 0; i < n; ++i) squares += static_cast<double>(x[i]) * x[i];
  const double scale = 1.0 / std::sqrt(squares / static_cast<double>(n) + epsilon);
  for (size_t i = 0; i < n; ++i) {
    // All terms of the sum are positive, so it is off by its roundings alone.
    Expected want;
    want.add(scale * x[i], gamma[i]);
    ASSERT_TRUE(within(want, sum_factor(n), out[i])) << "channel " << i << " of " << n;
  }
}

void run_case(size_t rows, size_t channels, size_t stride, Fill fill, float epsilon) {
  const uint32_t seed = static_cast<uint32_t>(channels);
  TestValues x(rows * stride, seed, fill), out(rows * stride, seed + 1);
  const TestValues gamma(channels, seed + 2);
  const View<float, 2> xv(x.data(), {rows, channels}, {stride, 1}), ov(out.data(), {rows, channels}, {stride, 1});
  const float behind = out[channels];
  rms_norm(xv, gamma.data(), epsilon, ov);
  for (size_t t = 0; t < rows; ++t) expect_row(xv.row(t), gamma.data(), epsilon, ov.row(t), channels);
  if (stride > channels) {
    EXPECT_EQ(out[channels], behind);
  }
  rms_norm(xv, gamma.data(), epsilon, xv);
  for (size_t t = 0; t < rows; ++t) EXPECT_EQ(std::memcmp(xv.row(t), ov.row(t), channels * sizeof(float)), 0);
}

TEST(RmsNorm, MatchesTwinOnEdgesAndModels) {
  for_each_target([] {
    for (const size_t channels : edge_sizes()) run_case(3, channels, channels + 3, Fill::kNormal, 1e-6f);
    for (const size_t channels : {128, 1024, 4096}) run_case(2, channels, channels, Fill::kNormal, 1e-5f);
  });
}

TEST(RmsNorm, MatchesTwinOnZerosDenormalsLarge) {
  for_each_target([] {
    for (const Fill fill : {Fill::kZeros, Fill::kDenormal, Fill::kLarge}) run_case(2, 65, 65, fill, 1e-6f);
  });
}

}  // namespace
}  // namespace syrinx::kernels
