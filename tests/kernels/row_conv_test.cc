// Convolutions over ready rows against scalar twins in double, on every target: shapes with tails, strides, dilations,
// f32 and bf16 weights, rows of f32 and bf16, residuals, scales, activations, and any way to share the work.
#include "kernels/row_conv.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "for_each_target.h"
#include "kernels/pack.h"
#include "kernels/pack_rows.h"
#include "tensor/dtype.h"

namespace syrinx::kernels {
namespace {

struct Case {
  size_t channels = 1, columns = 1, taps = 1, rows = 1;
  size_t dilation = 1, stride = 1;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const size_t channels : {1, 3, 4, 6, 17})
    for (const size_t columns : {1, 31, 32, 70})
      for (const size_t rows : {1, 2, 5, 6, 7, 11, 12, 13, 16, 25}) all.push_back({channels, columns, 1, rows});
  all.push_back({16, 40, 3, 40, 1, 1});
  all.push_back({12, 33, 7, 45, 3, 1});
  all.push_back({10, 70, 2, 17, 1, 1});  // a transposed one's two taps
  all.push_back({8, 20, 12, 16, 1, 6});
  return all;
}

float rounded(float value) { return bf16_to_f32(f32_to_bf16(value)); }

// Everything that one convolution reads and writes.
struct Problem {
  Problem(const Case& shape, uint32_t seed, bool bf16, RowType type = RowType::kF32)
      : c(shape),
        row_type(type),
        width(round_up(shape.channels, 4) + 3),
        stride(round_up(shape.columns, 32) + 5),
        input((shape.rows * shape.stride + shape.taps * shape.dilation) * width, seed),
        weights(shape.columns * shape.channels * shape.taps, seed + 1),
        bias(shape.columns, seed + 2),
        residual(shape.rows * stride, seed + 3),
        scale(round_up(shape.columns, 32), seed + 4),
        output(shape.rows * stride, seed + 5),
        activated(shape.rows * stride, seed + 6),
        activated_bf16(activated.size(), 0xAAAA) {
    for (size_t i = 0; type == RowType::kBf16 && i < input.size(); ++i) {
      input[i] = rounded(input[i]);
      input_bf16.push_back(f32_to_bf16(input[i]));
    }
    for (size_t i = 0; bf16 && i < weights.size(); ++i) {
      uint32_t bits;
      std::memcpy(&bits, &weights[i], sizeof bits);
      weights[i] = bf16_to_f32(static_cast<uint16_t>(bits >> 16));
    }
    matrix = pack_exact({.columns = c.columns, .channels = c.channels, .taps = c.taps},
                        [&](size_t n, size_t k, size_t t) { return weight(n, k, t); }, {bias.data(), c.columns});
    EXPECT_EQ(matrix.view.type, bf16 ? PanelType::kBf16 : PanelType::kF32);
  }
  float weight(size_t n, size_t k, size_t t) const { return weights[(n * c.channels + k) * c.taps + t]; }
  RowConv conv() {
    return {.input = row_type == RowType::kF32 ? static_cast<const void*>(input.data()) : input_bf16.data(),
            .input_type = row_type,
            .rows = c.rows,
            .row_step = c.stride * width,
            .tap_step = c.dilation * width,
            .output = output.data(),
            .stride = stride};
  }
  Expected expected(size_t m, size_t n) const {
    Expected e;
    e.add(bias[n]);
    for (size_t t = 0; t < c.taps; ++t)
      for (size_t k = 0; k < c.channels; ++k)
        e.add(input[(m * c.stride + t * c.dilation) * width + k], weight(n, k, t));
    return e;
  }
  double factor() const { return sum_factor(c.taps * c.channels + 1); }

  Case c;
  RowType row_type;
  size_t width, stride;
  TestValues input, weights, bias, residual, scale, output, activated;
  std::vector<uint16_t> input_bf16, activated_bf16;
  OwnedMatrix matrix;
};

void run(Problem& p, const RowConv& conv) {
  row_conv(p.matrix.view, conv, {0, p.c.rows}, {0, p.matrix.view.panel_count()});
}

TEST(RowConv, MatchesItsTwin) {
  for_each_target([] {
    uint32_t seed = 1;
    for (const Case& c : cases()) {
      for (const auto& [bf16, rows] :
           {std::pair(false, RowType::kF32), std::pair(true, RowType::kF32), std::pair(true, RowType::kBf16)}) {
        Problem p(c, seed += 10, bf16, rows);
        run(p, p.conv());
        for (size_t m = 0; m < c.rows; ++m)
          for (size_t n = 0; n < c.columns; ++n)
            ASSERT_TRUE(within(p.expected(m, n), p.factor(), p.output[m * p.stride + n]))
                << "rows " << c.rows << " channels " << c.channels << " columns " << c.columns << " taps " << c.taps
                << " at " << m << ", " << n;
      }
    }
  });
}

TEST(RowConv, NarrowWeightsGiveTheSameSums) {
  for_each_target([] {
    Problem narrow({17, 70, 3, 16}, 5, true);
    run(narrow, narrow.conv());
    Problem wide({17, 70, 3, 16}, 5, true);
    wide.matrix = pack_f32({.columns = 70, .channels = 17, .taps = 3},
                           [&](size_t n, size_t k, size_t t) { return wide.weight(n, k, t); }, {wide.bias.data(), 70});
    run(wide, wide.conv());
    for (size_t m = 0; m < 16; ++m)
      EXPECT_EQ(std::memcmp(&narrow.output[m * narrow.stride], &wide.output[m * wide.stride], 70 * 4), 0) << m;
  });
}

// e^v - 1, the two GELUs and SiLU change a bound by their slope, which stays below 1.13, and add their own rounding.
TEST(RowConv, ScaleResidualAndActivation) {
  const auto elu = [](double v) { return v < 0 ? std::expm1(v) : v; };
  const auto gelu_tanh = [](double v) {
    return 0.5 * v * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
  };
  const auto gelu_erf = [](double v) { return 0.5 * v * std::erfc(-v * std::sqrt(0.5)); };
  const std::pair<RowActivation, std::function<double(double)>> kinds[] = {
      {RowActivation::kNone, [](double v) { return v; }},
      {RowActivation::kElu, elu},
      {RowActivation::kGeluTanh, gelu_tanh},
      {RowActivation::kGeluErf, gelu_erf},
      {RowActivation::kSilu, [](double v) { return v / (1 + std::exp(-v)); }}};
  for_each_target([&] {
    for (const auto& [kind, function] : kinds) {
      Problem p({33, 37, 2, 13}, 3, true);
      RowConv conv = p.conv();
      conv.activated = p.activated.data();
      conv.activation = kind;
      conv.residual = p.residual.data();
      conv.residual_stride = p.stride;
      conv.scale = p.scale.data();
      run(p, conv);
      for (size_t m = 0; m < 13; ++m) {
        for (size_t n = 0; n < 37; ++n) {
          const Expected sum = p.expected(m, n);
          const double scale = p.scale[n], residual = p.residual[m * p.stride + n];
          Expected want{.value = sum.value * scale + residual,
                        .magnitude = sum.magnitude * std::abs(scale) + std::abs(residual)};
          ASSERT_TRUE(within(want, p.factor() + 2, p.output[m * p.stride + n])) << m << ", " << n;
          want.magnitude = 1.13 * want.magnitude;
          want.value = function(want.value);
          ASSERT_TRUE(within(want, p.factor() + 8, p.activated[m * p.stride + n])) << m << ", " << n;
        }
      }
    }
  });
}

// The next layer's input in bf16 is its f32 input, rounded.
TEST(RowConv, ActivatedRowsOfBf16) {
  for_each_target([] {
    for (const auto& [type, activation] :
         {std::pair(RowType::kF32, RowActivation::kElu), std::pair(RowType::kBf16, RowActivation::kElu),
          std::pair(RowType::kBf16, RowActivation::kSnakeBeta)}) {
      Problem p({33, 37, 2, 13}, 3, true, type);
      const TestValues alpha(64, 8), inverse_beta(64, 9);
      RowConv conv = p.conv();
      conv.activation = activation;
      conv.snake = {.alpha = alpha.data(), .inverse_beta = inverse_beta.data()};
      conv.activated = p.activated.data();
      run(p, conv);
      conv.activated = p.activated_bf16.data();
      conv.activated_type = RowType::kBf16;
      run(p, conv);
      for (size_t m = 0; m < 13; ++m) {
        for (size_t n = 0; n < 37; ++n)
          ASSERT_EQ(p.activated_bf16[m * p.stride + n], f32_to_bf16(p.activated[m * p.stride + n])) << m << ", " << n;
        ASSERT_EQ(p.activated_bf16[m * p.stride + 64], 0xAAAA) << "behind the last panel of row " << m;
      }
    }
  });
}

// The twin starts from the rows that the kernel itself made, so that a large slope widens no bound.
TEST(RowConv, SnakeBetaOfEachColumn) {
  for_each_target([] {
    Problem p({33, 70, 2, 25}, 3, false);
    std::vector<float> alpha(96), inverse_beta(96);
    for (size_t n = 0; n < 70; ++n) {
      alpha[n] = 0.1f * std::pow(1.12f, static_cast<float>(n));  // to 250
      inverse_beta[n] = 8.0f / static_cast<float>(n + 1);
    }
    RowConv conv = p.conv();
    conv.activated = p.activated.data();
    conv.activation = RowActivation::kSnakeBeta;
    conv.snake = {.alpha = alpha.data(), .inverse_beta = inverse_beta.data()};
    run(p, conv);
    float most = 0;
    for (size_t m = 0; m < 25; ++m) {
      for (size_t n = 0; n < 96; ++n) {
        const float y = n < 70 ? p.output[m * p.stride + n] : 0.0f, product = alpha[n] * y;
        const double weight = inverse_beta[n], want = y + weight * std::pow(std::sin(double{product}), 2);
        const double bound = 4e-7 * weight + 1.2e-7 * (std::abs(double{y}) + weight);
        ASSERT_NEAR(p.activated[m * p.stride + n], want, bound) << m << ", " << n;
        most = std::max(most, std::abs(product));
      }
    }
    EXPECT_GT(most, 300.0f);
  });
}

TEST(RowConv, SnakeBetaStaysBounded) {
  for_each_target([] {
    Problem p({4, 32, 1, 3}, 5, false);
    const std::vector<float> alpha(32, 1e30f), inverse_beta(32, 0.5f);
    RowConv conv = p.conv();
    conv.activated = p.activated.data();
    conv.activation = RowActivation::kSnakeBeta;
    conv.snake = {.alpha = alpha.data(), .inverse_beta = inverse_beta.data()};
    run(p, conv);
    for (size_t m = 0; m < 3; ++m) {
      for (size_t n = 0; n < 32; ++n) {
        const float above = p.activated[m * p.stride + n] - p.output[m * p.stride + n];
        ASSERT_TRUE(above >= -1e-6f && above <= 0.500001f) << m << ", " << n << ": " << above;
      }
    }
  });
}

TEST(RowConv, TheResidualMayBeTheOutput) {
  for_each_target([] {
    Problem apart({8, 32, 1, 9}, 4, true), in_place({8, 32, 1, 9}, 4, true);
    RowConv conv = apart.conv();
    conv.residual = apart.residual.data();
    conv.residual_stride = apart.stride;
    run(apart, conv);
    conv = in_place.conv();
    conv.output = in_place.residual.data();
    conv.residual = in_place.residual.data();
    conv.residual_stride = in_place.stride;
    run(in_place, conv);
    for (size_t m = 0; m < 9; ++m)
      EXPECT_EQ(std::memcmp(&apart.output[m * apart.stride], &in_place.residual[m * apart.stride], 32 * 4), 0);
  });
}

TEST(RowConv, SharesAreTheWholeAndChangeNothing) {
  for_each_target([] {
    for (const RowType type : {RowType::kF32, RowType::kBf16}) {
      for (const size_t rows : {1, 16, 75, 96, 121}) {
        Problem p({20, 70, 3, rows}, 6, true, type), whole({20, 70, 3, rows}, 6, true, type);
        run(whole, whole.conv());
        for (const int members : {1, 2, 3, 5}) {
          for (size_t i = 0; i < p.output.size(); ++i) p.output[i] = -1e30f;
          for (int member = 0; member < members; ++member) {
            const RowConvShare share = share_row_conv(p.matrix.view, rows, member, members);
            row_conv(p.matrix.view, p.conv(), share.rows, share.panels);
          }
          for (size_t m = 0; m < rows; ++m)
            ASSERT_EQ(std::memcmp(&p.output[m * p.stride], &whole.output[m * p.stride], 70 * 4), 0)
                << "row " << m << " of " << rows << ", " << members << " members";
        }
      }
    }
  });
}

// A convolution of rows of int16: its numbers as the kernels made them.
struct WholeProblem {
  WholeProblem(const Case& shape, std::vector<float> rows, std::vector<float> stored)
      : c(shape),
        depth(round_up(shape.channels, kDepthGroup)),
        stride(round_up(shape.channels, 32) + 32),
        input_rows(shape.rows + (shape.taps - 1) * shape.dilation),
        input(std::move(rows)),
        weights(std::move(stored)),
        bias(shape.columns, 5),
        output(shape.rows * round_up(shape.columns, 32), 6),
        scale(input_rows),
        whole(input_rows * stride, 77) {
    ThreadTeam team(1);
    const StoredRows given{.bytes = std::as_bytes(std::span(weights)), .columns = c.columns};
    matrix = pack_rows(PanelType::kInt16, c.taps * depth, {&given, 1}, {bias.data(), c.columns}, team);
    matrix.view.channels = c.channels;
    matrix.view.taps = c.taps;
    quantise_rows({input.data(), {input_rows, c.channels}}, whole.data(), stride, scale.data());
  }
  RowConv conv() {
    return {.input = whole.data(),
            .input_type = RowType::kInt16,
            .rows = c.rows,
            .row_step = stride,
            .tap_step = c.dilation * stride,
            .row_scale = scale.data(),
            .output = output.data(),
            .stride = round_up(c.columns, 32)};
  }
  int weight(size_t n, size_t t, size_t k) const {
    const size_t at = t * depth + k;
    return static_cast<const int16_t*>(
        matrix.view.panels)[n / 32 * matrix.view.panel_elements() + at / 2 * 64 + n % 32 * 2 + at % 2];
  }
  float result(size_t m, size_t n) const { return output[m * round_up(c.columns, 32) + n]; }
  void run() { row_conv(matrix.view, conv(), {0, c.rows}, {0, matrix.view.panel_count()}); }

  Case c;
  size_t depth, stride, input_rows;
  std::vector<float> input, weights;  // [input_rows, channels], [columns, taps, depth]
  TestValues bias, output;
  std::vector<float> scale;
  std::vector<int16_t> whole;
  OwnedMatrix matrix;
};

WholeProblem random_whole(const Case& c) {
  const size_t depth = round_up(c.channels, kDepthGroup);
  const TestValues input((c.rows + (c.taps - 1) * c.dilation) * c.channels, 3);
  const TestValues weights(c.columns * c.taps * depth, 4);
  return {c, {input.data(), input.data() + input.size()}, {weights.data(), weights.data() + weights.size()}};
}

const Case kWholeCases[] = {{1, 1, 1, 1},        {3, 33, 1, 13},  {17, 70, 2, 25},  {96, 32, 7, 40, 3},
                            {258, 40, 3, 12, 2}, {512, 31, 1, 7}, {260, 65, 1, 24}, {40, 32, 7, 5, 9}};

TEST(RowConv, RowsOfInt16KeepTheirNumbers) {
  for_each_target([] {
    for (const Case& c : kWholeCases) {
      const WholeProblem p = random_whole(c);
      for (size_t m = 0; m < p.input_rows; ++m) {
        const auto row = std::span(p.input).subspan(m * c.channels, c.channels);
        float most = 0.0f;
        for (const float value : row) most = std::max(most, std::abs(value));
        ASSERT_EQ(p.scale[m], most / kInt16Activation);
        for (size_t k = 0; k < c.channels; ++k)
          ASSERT_NEAR(p.whole[m * p.stride + k] * double{p.scale[m]}, row[k], 0.5005 * p.scale[m]) << m << ", " << k;
        for (size_t k = c.channels; k < p.stride; ++k) ASSERT_EQ(p.whole[m * p.stride + k], 0);
      }
      for (size_t n = 0; n < c.columns; ++n) {
        const double scale = p.matrix.view.scale[n];
        for (size_t t = 0; t < c.taps; ++t) {
          int64_t run = 0;
          for (size_t k = 0; k < p.depth; ++k) {
            const int weight = p.weight(n, t, k);
            run = (k % kInt16Run == 0 ? 0 : run) + std::abs(weight);
            ASSERT_LE(run, kInt16RunSum);
            ASSERT_NEAR(weight * scale, p.weights[(n * c.taps + t) * p.depth + k], 0.5005 * scale) << n << ", " << k;
          }
        }
      }
    }
  });
}

TEST(RowConv, RowsOfInt16MatchTheirTwin) {
  for_each_target([] {
    for (const Case& c : kWholeCases) {
      WholeProblem p = random_whole(c);
      p.run();
      for (size_t m = 0; m < c.rows; ++m) {
        for (size_t n = 0; n < c.columns; ++n) {
          Expected e;
          e.add(p.bias[n]);
          for (size_t t = 0; t < c.taps; ++t) {
            const size_t row = m + t * c.dilation;
            for (size_t k = 0; k < p.depth; ++k)
              e.add(double{p.scale[row]} * p.whole[row * p.stride + k],
                    double{p.matrix.view.scale[n]} * p.weight(n, t, k));
          }
          const size_t sums = c.taps * (p.depth / kInt16Run + 1);
          ASSERT_TRUE(within(e, sum_factor(2 * sums + 2), p.result(m, n))) << c.channels << ": " << m << ", " << n;
        }
      }
    }
  });
}

TEST(RowConv, SumsOfInt16StayWithinTheirRange) {
  for_each_target([] {
    const Case c{512, 32, 3, 14};
    for (const float sign : {1.0f, -1.0f}) {
      WholeProblem p(c, std::vector<float>(16 * 512, sign), std::vector<float>(32 * 3 * 512, 0.25f));
      p.run();
      for (size_t m = 0; m < c.rows; ++m) ASSERT_NEAR(p.result(m, 7), sign * 384.0f + p.bias[7], 0.01) << m;
    }
  });
}

TEST(RowConv, NumbersThatAreNoneReachTheirSums) {
  for_each_target([] {
    const Case c{20, 32, 3, 12};
    for (const float value : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      std::vector<float> input(14 * 20, 0.5f);
      input[5 * 20 + 18] = value;
      std::fill_n(input.begin(), 20, 0.0f);
      WholeProblem p(c, input, std::vector<float>(32 * 3 * 20, 0.25f));
      p.run();
      for (size_t m = 0; m < c.rows; ++m) EXPECT_EQ(std::isfinite(p.result(m, 3)), m < 3 || m > 5) << m;
      EXPECT_EQ(p.scale[0], 0.0f);
    }
  });
}

TEST(RowDot, MatchesItsTwin) {
  for_each_target([] {
    for (const size_t length : edge_sizes()) {
      const size_t rows = 9, step = length / 3 + 1;
      const TestValues x(rows * step + length, 1), w(length, 2);
      TestValues y(rows + 1, 3);
      const float behind = y[rows];
      row_dot(w.data(), length, 0.5f, x.data(), step, y.data(), {0, 4});
      row_dot(w.data(), length, 0.5f, x.data(), step, y.data(), {4, rows});
      for (size_t m = 0; m < rows; ++m) {
        Expected e;
        e.add(0.5);
        for (size_t j = 0; j < length; ++j) e.add(x[m * step + j], w[j]);
        ASSERT_TRUE(within(e, sum_factor(length + 1), y[m])) << length << " at " << m;
      }
      EXPECT_EQ(y[rows], behind);
    }
  });
}

}  // namespace
}  // namespace syrinx::kernels
