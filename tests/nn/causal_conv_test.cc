#include "nn/causal_conv.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <random>

namespace syrinx::nn {
namespace {

struct Case {
  size_t in = 5, out = 7, kernel = 3, stride = 1, dilation = 1;
  bool transposed = false;  // by `stride`; the kernel is twice that
};

// A convolution with random weights, and its definition in double.
class Fixture {
 public:
  explicit Fixture(const Case& test) : c(test) {
    const size_t taps = c.transposed ? 2 * c.stride : c.kernel;
    weight_ = values(c.out * c.in * taps);
    bias_ = values(c.out);
    conv.input_width = round_up(c.in, kPanelColumns);
    conv.width = round_up(c.out, kPanelColumns);
    if (!c.transposed) {
      conv.stride = c.stride;
      conv.dilation = c.dilation;
      conv.history = (c.kernel - 1) * c.dilation + 1 - c.stride;
      conv.matrix = kernels::pack_f32(
          {.columns = c.out, .channels = c.in, .taps = c.kernel},
          [&](size_t n, size_t k, size_t t) { return at(n, k, t); }, bias_);
      return;
    }
    conv.up = c.stride;
    conv.history = 1;
    std::vector<float> biases(c.stride * conv.width);
    for (size_t j = 0; j < c.stride; ++j)
      std::copy(bias_.begin(), bias_.end(), biases.begin() + static_cast<ptrdiff_t>(j * conv.width));
    conv.matrix = kernels::pack_f32(
        {.columns = c.stride * conv.width, .channels = c.in, .taps = 2},
        [&](size_t n, size_t k, size_t t) {
          const size_t column = n % conv.width;
          return column < c.out ? at(column, k, (t == 0 ? c.stride : 0) + n / conv.width) : 0.0f;
        },
        biases);
  }

  std::vector<float> values(size_t count) {
    std::vector<float> made(count);
    for (float& value : made) value = normal_(random_);
    return made;
  }

  // Output number `n` of row `row`, and what a float may differ from it by.
  double expected(const std::vector<float>& x, size_t row, size_t n, double* bound) const {
    double sum = bias_[n], magnitude = std::abs(bias_[n]);
    const auto add = [&](size_t input_row, size_t tap) {
      for (size_t k = 0; k < c.in; ++k) {
        const double term = static_cast<double>(x[input_row * c.in + k]) * at(n, k, tap);
        sum += term;
        magnitude += std::abs(term);
      }
    };
    if (c.transposed) {
      const size_t t = row / c.stride, phase = row % c.stride;
      add(t, phase);
      if (t > 0) add(t - 1, phase + c.stride);
    } else {
      for (size_t tap = 0; tap < c.kernel; ++tap) {
        const size_t padded = row * c.stride + tap * c.dilation;
        if (padded >= conv.history) add(padded - conv.history, tap);
      }
    }
    *bound = (static_cast<double>(c.kernel * c.in * 2) + 4) * FLT_EPSILON * magnitude;
    return sum;
  }

  Case c;
  CausalConv conv;

 private:
  float at(size_t n, size_t k, size_t t) const {
    return weight_[(n * c.in + k) * (c.transposed ? 2 * c.stride : c.kernel) + t];
  }
  std::vector<float> weight_, bias_;
  std::mt19937 random_{5};
  std::normal_distribution<float> normal_;
};

// `rows` input rows in passes of `pass`, by `members` members in turn; what they give, [rows, width].
std::vector<float> run(const Fixture& f, const std::vector<float>& x, size_t rows, size_t pass, int members) {
  const CausalConv& conv = f.conv;
  const size_t width = conv.input_width, outputs = rows / conv.stride * conv.up;
  Buffer<float> plane((conv.history + pass) * width + 32);
  std::vector<float> out(outputs * conv.width + kPanelColumns);
  float* const in = plane.data() + conv.history * width;
  for (size_t first = 0; first < rows; first += pass) {
    for (size_t n = 0; n < pass; ++n) std::copy_n(x.data() + (first + n) * f.c.in, f.c.in, in + n * width);
    const CausalConv::Target to{.output = out.data() + first / conv.stride * conv.up * conv.width};
    for (int member = 0; member < members; ++member)
      conv.run({.member = member, .rank = member, .size = members}, reinterpret_cast<const std::byte*>(in), pass, to);
    std::copy_n(in + pass * width - conv.history * width, conv.history * width, plane.data());
  }
  return out;
}

void run_case(const Case& test) {
  SCOPED_TRACE(::testing::Message() << test.in << " -> " << test.out << ", kernel " << test.kernel << ", stride "
                                    << test.stride << ", dilation " << test.dilation
                                    << (test.transposed ? ", transposed" : ""));
  Fixture f(test);
  constexpr size_t kRows = 24;
  const std::vector<float> x = f.values(kRows * test.in);
  const std::vector<float> whole = run(f, x, kRows, kRows, 1);
  const size_t outputs = kRows / f.conv.stride * f.conv.up;
  for (size_t row = 0; row < outputs; ++row) {
    for (size_t n = 0; n < test.out; ++n) {
      double bound = 0;
      const double want = f.expected(x, row, n, &bound);
      ASSERT_NEAR(whole[row * f.conv.width + n], want, bound) << "row " << row << " number " << n;
    }
  }
  for (const size_t pass : {4, 8, 12}) {
    EXPECT_EQ(run(f, x, kRows, pass, 1), whole) << pass;
    EXPECT_EQ(run(f, x, kRows, pass, 3), whole) << pass;
  }
}

TEST(CausalConv, WholeAndPassesMatchTwin) {
  run_case({});
  run_case({.in = 40, .out = 33, .kernel = 7});
  run_case({.kernel = 3, .dilation = 2});
  run_case({.kernel = 4, .stride = 2});
  run_case({.in = 3, .out = 64, .kernel = 8, .stride = 4});
  run_case({.kernel = 1});
}

TEST(CausalConv, TransposedMatchesTwin) {
  run_case({.stride = 2, .transposed = true});
  run_case({.in = 33, .out = 40, .stride = 4, .transposed = true});
}

// Three streams at once: what each has alone, with all that a target may ask for.
TEST(CausalConv, PiecesKeepTheirBits) {
  Fixture f({.in = 40, .out = 70, .kernel = 7, .dilation = 3});
  const CausalConv& conv = f.conv;
  const std::vector<size_t> counts = {5, 1, 40};
  const std::vector<float> residual = f.values(40 * conv.width), scale = f.values(conv.width),
                           alpha = f.values(conv.width), inverse_beta = f.values(conv.width);
  std::vector<Buffer<float>> planes;
  std::vector<std::vector<float>> output, ready;
  std::vector<CausalConv::Piece> pieces;
  for (const size_t count : counts) {
    planes.emplace_back((conv.history + count) * conv.input_width);
    const std::vector<float> x = f.values(planes.back().size());
    std::copy(x.begin(), x.end(), planes.back().begin());
    output.emplace_back(count * conv.width);
    ready.emplace_back(count * conv.width);
  }
  for (size_t i = 0; i < counts.size(); ++i)
    pieces.push_back({.in = reinterpret_cast<const std::byte*>(planes[i].data() + conv.history * conv.input_width),
                      .rows = counts[i],
                      .to = {.output = output[i].data(),
                             .ready = reinterpret_cast<std::byte*>(ready[i].data()),
                             .activation = kernels::RowActivation::kSnakeBeta,
                             .snake = {alpha.data(), inverse_beta.data()},
                             .residual = residual.data(),
                             .scale = scale.data()}});
  for (const CausalConv::Piece& piece : pieces) conv.run({}, piece.in, piece.rows, piece.to);
  const auto want = std::pair(output, ready);
  EXPECT_NE(want.first, want.second);
  for (const int members : {1, 2, 3}) {
    for (auto* rows : {&output, &ready})
      for (std::vector<float>& row : *rows) std::fill(row.begin(), row.end(), -1.0f);
    for (int member = 0; member < members; ++member)
      conv.run({.member = member, .rank = member, .size = members}, pieces);
    EXPECT_EQ(std::pair(output, ready), want) << members << " members";
  }
}

}  // namespace
}  // namespace syrinx::nn
