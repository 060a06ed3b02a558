#include "nn/causal_conv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <random>

#include "for_each_target.h"
#include "kernels/pack_rows.h"

namespace syrinx::nn {
namespace {

struct Case {
  size_t in = 5, out = 7, kernel = 3, stride = 1, dilation = 1;
  bool transposed = false;  // by `stride`; the kernel is twice that
};

// Weights as a checkpoint's loader packs them: int16 in one tap of all of them.
kernels::OwnedMatrix pack(PanelType type, const kernels::MatrixShape& shape, const kernels::WeightAt& weight,
                          const std::vector<float>& bias) {
  if (type == PanelType::kF32) return kernels::pack_f32(shape, weight, bias);
  const size_t depth = round_up(shape.channels, kDepthGroup);
  std::vector<float> rows(shape.columns * shape.taps * depth);
  for (size_t n = 0; n < shape.columns; ++n)
    for (size_t t = 0; t < shape.taps; ++t)
      for (size_t k = 0; k < shape.channels; ++k) rows[(n * shape.taps + t) * depth + k] = weight(n, k, t);
  ThreadTeam team(1);
  const kernels::StoredRows stored{.bytes = std::as_bytes(std::span(rows)), .columns = shape.columns};
  kernels::OwnedMatrix matrix = kernels::pack_rows(type, shape.taps * depth, {&stored, 1}, bias, team);
  matrix.view.channels = shape.channels;
  matrix.view.taps = shape.taps;
  return matrix;
}

// A convolution with random weights, and its definition in double.
class Fixture {
 public:
  explicit Fixture(const Case& test, PanelType type = PanelType::kF32) : c(test) {
    const size_t taps = c.transposed ? 2 * c.stride : c.kernel;
    weight_ = values(c.out * c.in * taps);
    bias_ = values(c.out);
    conv.input_width = round_up(c.in, kPanelColumns);
    conv.width = round_up(c.out, kPanelColumns);
    if (!c.transposed) {
      conv.stride = c.stride;
      conv.dilation = c.dilation;
      conv.history = (c.kernel - 1) * c.dilation + 1 - c.stride;
      conv.matrix = pack(
          type, {.columns = c.out, .channels = c.in, .taps = c.kernel},
          [&](size_t n, size_t k, size_t t) { return at(n, k, t); }, bias_);
      return;
    }
    conv.up = c.stride;
    conv.history = 1;
    std::vector<float> biases(c.stride * conv.width);
    for (size_t j = 0; j < c.stride; ++j)
      std::copy(bias_.begin(), bias_.end(), biases.begin() + static_cast<ptrdiff_t>(j * conv.width));
    conv.matrix = pack(
        type, {.columns = c.stride * conv.width, .channels = c.in, .taps = 2},
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

  // Output number `n` of row `row`, and what a float may differ from it by; with int16 half a step of each weight and
  // of each number of a row besides.
  double expected(const std::vector<float>& x, size_t row, size_t n, double* bound) const {
    double sum = bias_[n], magnitude = std::abs(bias_[n]), steps = 0;
    const bool is_int16 = conv.matrix.view.type == PanelType::kInt16;
    const auto add = [&](size_t input_row, size_t tap) {
      const float* const numbers = x.data() + input_row * c.in;
      float most = 0;
      for (size_t k = 0; k < c.in; ++k) most = std::max(most, std::abs(numbers[k]));
      const size_t column = c.transposed ? row % c.stride * conv.width + n : n;
      const double of_row = is_int16 ? kHalf * most / kInt16Activation : 0;
      const double of_weight = is_int16 ? kHalf * double{conv.matrix.view.scale[column]} : 0;
      for (size_t k = 0; k < c.in; ++k) {
        const double term = static_cast<double>(numbers[k]) * at(n, k, tap);
        sum += term;
        magnitude += std::abs(term);
        if (most > 0) steps += of_weight * std::abs(numbers[k]) + of_row * std::abs(at(n, k, tap)) + of_weight * of_row;
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
    *bound = (static_cast<double>(c.kernel * c.in * 2) + 4) * FLT_EPSILON * magnitude + steps;
    return sum;
  }
  float bias(size_t n) const { return bias_[n]; }

  Case c;
  CausalConv conv;

 private:
  static constexpr double kHalf = 0.5005;  // a step's, and the roundings of the numbers that are rounded

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
  std::vector<std::byte> scratch(conv.scratch_bytes(pass, 1));
  for (size_t first = 0; first < rows; first += pass) {
    for (size_t n = 0; n < pass; ++n) std::copy_n(x.data() + (first + n) * f.c.in, f.c.in, in + n * width);
    const CausalConv::Target to{.output = out.data() + first / conv.stride * conv.up * conv.width};
    const CausalConv::Piece piece{.in = reinterpret_cast<const std::byte*>(in), .rows = pass, .to = to};
    for (int member = 0; member < members; ++member)
      conv.run({.member = member, .rank = member, .size = members}, {&piece, 1}, scratch);
    std::copy_n(in + pass * width - conv.history * width, conv.history * width, plane.data());
  }
  return out;
}

// Each number of `rows` input rows within its bound.
void expect_near(const Fixture& f, const std::vector<float>& x, size_t rows, const std::vector<float>& got) {
  for (size_t row = 0; row < rows / f.conv.stride * f.conv.up; ++row) {
    for (size_t n = 0; n < f.c.out; ++n) {
      double bound = 0;
      const double want = f.expected(x, row, n, &bound);
      ASSERT_NEAR(got[row * f.conv.width + n], want, bound) << "row " << row << " number " << n;
    }
  }
}

void run_case(const Case& test, PanelType type = PanelType::kF32) {
  SCOPED_TRACE(::testing::Message() << test.in << " -> " << test.out << ", kernel " << test.kernel << ", stride "
                                    << test.stride << ", dilation " << test.dilation
                                    << (test.transposed ? ", transposed" : ""));
  Fixture f(test, type);
  constexpr size_t kRows = 24;
  const std::vector<float> x = f.values(kRows * test.in);
  const std::vector<float> whole = run(f, x, kRows, kRows, 1);
  expect_near(f, x, kRows, whole);
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
void run_pieces(PanelType type) {
  Fixture f({.in = 40, .out = 70, .kernel = 7, .dilation = 3}, type);
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
  std::vector<std::byte> scratch(conv.scratch_bytes(46, 3));
  for (const CausalConv::Piece& piece : pieces) conv.run({}, {&piece, 1}, scratch);
  const auto want = std::pair(output, ready);
  EXPECT_NE(want.first, want.second);
  for (const int members : {1, 2, 3}) {
    for (auto* rows : {&output, &ready})
      for (std::vector<float>& row : *rows) std::fill(row.begin(), row.end(), -1.0f);
    for (int member = 0; member < members; ++member)
      conv.run({.member = member, .rank = member, .size = members}, pieces, scratch);
    EXPECT_EQ(std::pair(output, ready), want) << members << " members";
  }
}

TEST(CausalConv, PiecesKeepTheirBits) { run_pieces(PanelType::kF32); }

TEST(CausalConv, PiecesOfInt16KeepTheirBits) {
  kernels::for_each_target([] { run_pieces(PanelType::kInt16); });
}

// Chunks are the whole to the bit, and the whole is as near as its steps allow.
TEST(CausalConv, Int16StaysWithinItsSteps) {
  const Case cases[] = {{},
                        {.in = 1, .out = 1, .kernel = 1},
                        {.in = 33, .out = 65, .kernel = 1},
                        {.in = 40, .out = 33, .kernel = 7},
                        {.in = 37, .out = 31, .kernel = 7, .dilation = 9},
                        {.in = 258, .out = 35, .kernel = 3, .dilation = 2},
                        {.stride = 2, .transposed = true},
                        {.in = 33, .out = 40, .stride = 5, .transposed = true}};
  kernels::for_each_target([&] {
    for (const Case& each : cases) run_case(each, PanelType::kInt16);
  });
}

TEST(CausalConv, SilenceInInt16IsTheBias) {
  kernels::for_each_target([] {
    const Fixture f({.in = 37, .out = 33, .kernel = 7, .dilation = 3}, PanelType::kInt16);
    const std::vector<float> made = run(f, std::vector<float>(24 * 37), 24, 8, 2);
    for (size_t row = 0; row < 24; ++row)
      for (size_t n = 0; n < 33; ++n) ASSERT_EQ(made[row * f.conv.width + n], f.bias(n)) << row << ", " << n;
  });
}

// Rows that do not read it keep their bits, those that do lose no more than its steps.
TEST(CausalConv, LoudRowSparesQuietOnesInInt16) {
  kernels::for_each_target([] {
    constexpr size_t kRows = 24, kLoud = 9;
    Fixture f({.in = 37, .out = 33, .kernel = 3, .dilation = 2}, PanelType::kInt16);
    std::vector<float> x = f.values(kRows * f.c.in);
    for (float& value : x) value *= 1e-3f;
    const std::vector<float> quiet = run(f, x, kRows, 8, 1);
    for (size_t k = 0; k < f.c.in; ++k) x[kLoud * f.c.in + k] *= 1e6f;
    const std::vector<float> made = run(f, x, kRows, 8, 1);
    expect_near(f, x, kRows, made);
    for (size_t row = 0; row < kRows; ++row) {
      const bool reads = row == kLoud || row == kLoud + 2 || row == kLoud + 4;
      const auto at = static_cast<ptrdiff_t>(row * f.conv.width), end = at + static_cast<ptrdiff_t>(f.c.out);
      EXPECT_EQ(std::equal(made.begin() + at, made.begin() + end, quiet.begin() + at), !reads) << row;
    }
  });
}

}  // namespace
}  // namespace syrinx::nn
