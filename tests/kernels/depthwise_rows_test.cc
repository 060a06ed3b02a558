#include "kernels/depthwise_rows.h"

#include "for_each_target.h"
#include "kernels/glu.h"

namespace syrinx::kernels {
namespace {

double relu(double x) { return std::max(x, 0.0); }

void run_rows(size_t rows, size_t channels, size_t taps, size_t pad, RowsActivation activation) {
  const uint32_t seed = static_cast<uint32_t>(rows * 1000 + channels * 10 + taps);
  const TestValues x(rows * (channels + 3), seed), weight(taps * channels, seed + 1), bias(channels, seed + 2);
  const View<const float, 2> view(x.data(), {rows, channels}, {channels + 3, 1});
  const size_t outputs = rows + 2;  // also rows that read behind the end
  TestValues out(outputs * channels, seed + 3);
  const View<float, 2> to(out.data(), {outputs, channels});
  const DepthwiseRows conv{weight.data(), bias.data(), taps, pad, activation};
  depthwise_rows(conv, view, outputs / 2, outputs, to);
  depthwise_rows(conv, view, 0, outputs / 2, to);
  for (size_t t = 0; t < outputs; ++t) {
    for (size_t c = 0; c < channels; ++c) {
      Expected want;
      want.add(bias[c]);
      for (size_t j = 0; j < taps; ++j)
        if (t + j >= pad && t + j - pad < rows) want.add(weight[j * channels + c], view(t + j - pad, c));
      const double bound = want.bound(sum_factor(taps + 1));
      double value = want.value;
      if (activation == RowsActivation::kRelu) value = relu(value);
      if (activation == RowsActivation::kSilu) value /= 1 + std::exp(-value);
      // Neither activation is steeper than 1.1; the exponential and the division add some units of the last place.
      ASSERT_NEAR(to(t, c), value, 1.1 * bound + 8 * FLT_EPSILON * std::abs(value)) << t << " " << c;
    }
  }
}

TEST(DepthwiseRows, MatchesTheDefinition) {
  for_each_target([] {
    for (const size_t channels : edge_sizes()) run_rows(6, channels, 9, 4, RowsActivation::kSilu);
    run_rows(1, 33, 9, 8, RowsActivation::kNone);
    run_rows(20, 512, 9, 8, RowsActivation::kNone);
    run_rows(5, 40, 5, 0, RowsActivation::kRelu);
  });
}

void run_halving(size_t rows, size_t columns, size_t channels, size_t inputs, size_t pad) {
  const uint32_t seed = static_cast<uint32_t>(rows * 1000 + columns * 10 + channels);
  const size_t out_rows = pad == 2 ? rows / 2 + 1 : (rows + 1) / 2;
  const size_t out_columns = pad == 2 ? columns / 2 + 1 : (columns + 1) / 2;
  const TestValues x(rows * columns * inputs, seed), weight(9 * channels, seed + 1), bias(channels, seed + 2);
  TestValues out(out_rows * out_columns * channels, seed + 3);
  HalvingConv conv;
  conv.weight = weight.data();
  conv.bias = bias.data();
  conv.channels = channels;
  conv.input_channels = inputs;
  conv.input_columns = columns;
  conv.columns = out_columns;
  conv.pad = conv.pad_columns = pad;
  conv.relu = true;
  const View<float, 2> to(out.data(), {out_rows, out_columns * channels});
  halving_conv(conv, {x.data(), {rows, columns * inputs}}, 0, out_rows, to);
  for (size_t t = 0; t < out_rows; ++t) {
    for (size_t f = 0; f < out_columns; ++f) {
      for (size_t c = 0; c < channels; ++c) {
        Expected want;
        want.add(bias[c]);
        for (size_t j = 0; j < 3; ++j) {
          for (size_t k = 0; k < 3; ++k) {
            const size_t row = 2 * t + j - pad, column = 2 * f + k - pad;  // wraps round below zero
            if (row >= rows || column >= columns) continue;
            want.add(weight[(3 * j + k) * channels + c], x[(row * columns + column) * inputs + (inputs == 1 ? 0 : c)]);
          }
        }
        ASSERT_NEAR(to(t, f * channels + c), relu(want.value), want.bound(sum_factor(10))) << t << " " << f << " " << c;
      }
    }
  }
}

TEST(HalvingConv, MatchesTheDefinition) {
  for_each_target([] {
    for (const size_t pad : {1, 2}) {
      for (const size_t rows : {1, 2, 7}) {
        run_halving(rows, 9, 33, 1, pad);
        run_halving(rows, 10, 32, 32, pad);
      }
      for (const size_t channels : edge_sizes()) run_halving(3, 4, channels, channels, pad);
    }
  });
}

TEST(Glu, MatchesTheDefinition) {
  for_each_target([] {
    for (const size_t channels : edge_sizes()) {
      const TestValues x(3 * (2 * channels + 5), static_cast<uint32_t>(channels));
      TestValues out(3 * channels, 1);
      const View<const float, 2> from(x.data(), {3, 2 * channels}, {2 * channels + 5, 1});
      const View<float, 2> to(out.data(), {3, channels});
      glu(from, to);
      for (size_t t = 0; t < 3; ++t)
        for (size_t c = 0; c < channels; ++c) {
          const double a = from(t, c), b = from(t, c + channels);
          ASSERT_NEAR(to(t, c), a / (1 + std::exp(-b)), 8 * FLT_EPSILON * std::abs(a));
        }
    }
  });
}

}  // namespace
}  // namespace syrinx::kernels
