#include "kernels/depthwise.h"

#include "for_each_target.h"

namespace syrinx::kernels {
namespace {

// The definition: input row i adds weight[k] x[i] to output row 2 i - 1 + k, where there is such a row.
std::vector<Expected> transpose_twin(const View<const float, 2>& x, const float* weight, const float* bias) {
  const size_t rows = x.extent(0), channels = x.extent(1);
  std::vector<Expected> out(2 * rows * channels);
  for (size_t c = 0; c < channels; ++c) {
    for (size_t o = 0; o < 2 * rows && bias != nullptr; ++o) out[o * channels + c].add(bias[c]);
    for (size_t i = 0; i < rows; ++i) {
      for (size_t k = 0; k < 3; ++k) {
        if (2 * i + k < 1 || 2 * i + k > 2 * rows) continue;
        out[(2 * i + k - 1) * channels + c].add(weight[k * channels + c], x(i, c));
      }
    }
  }
  return out;
}

void run_case(size_t rows, size_t channels, Fill fill, bool with_bias) {
  const uint32_t seed = static_cast<uint32_t>(rows * 1000 + channels);
  const TestValues x(rows * (channels + 1), seed, fill), weight(3 * channels, seed + 1), bias(channels, seed + 2);
  const View<const float, 2> view(x.data(), {rows, channels}, {channels + 1, 1});
  TestValues out(2 * rows * channels, seed + 3);
  const View<float, 2> ov(out.data(), {2 * rows, channels});
  const float* b = with_bias ? bias.data() : nullptr;
  // Two ranges, as two threads would do it.
  depthwise_conv_transpose(view, weight.data(), b, rows / 2, rows, ov);
  depthwise_conv_transpose(view, weight.data(), b, 0, rows / 2, ov);
  const std::vector<Expected> want = transpose_twin(view, weight.data(), b);
  for (size_t i = 0; i < want.size(); ++i) ASSERT_TRUE(within(want[i], sum_factor(3), out[i])) << i;
}

TEST(DepthwiseConvTranspose, MatchesTheDefinition) {
  for_each_target([] {
    for (const size_t rows : {1, 2, 3, 8}) {
      for (const size_t channels : edge_sizes()) run_case(rows, channels, Fill::kNormal, true);
    }
    for (const Fill fill : {Fill::kZeros, Fill::kDenormal, Fill::kLarge}) run_case(4, 67, fill, false);
    run_case(20, 1090, Fill::kNormal, true);
  });
}

}  // namespace
}  // namespace syrinx::kernels
