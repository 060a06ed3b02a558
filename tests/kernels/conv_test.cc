// Implicit-GEMM convolutions against scalar twins in double, on every target: shapes with tails, strides, dilations,
// padding, both precisions and storages, activations, residuals, statistics, and any split of the work.
#include "kernels/conv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "for_each_target.h"
#include "kernels/pack.h"
#include "tensor/buffer.h"

namespace syrinx::kernels {
namespace {

struct Case {
  size_t channels = 1, columns = 1, taps = 1, rows = 1;
  size_t dilation = 1, stride = 1;
  ptrdiff_t pad = 0;
};

// Everything one convolution needs, with room for padding columns.
struct Problem {
  Case c;
  size_t in_rows, in_stride, out_stride;
  Buffer<float> in, out, residual;
  std::vector<float> weights, bias;  // weights [n][k][t]
  TileStats in_stats;
  std::vector<float> in_stats_values;

  Problem(const Case& shape, uint32_t seed)
      : c(shape),
        in_rows((shape.rows - 1) * shape.stride + (shape.taps - 1) * shape.dilation + 1 -
                2 * static_cast<size_t>(shape.pad)),
        in_stride(round_up(shape.channels, 32)),
        out_stride(round_up(shape.columns, 32)),
        in(in_rows * in_stride),
        out(shape.rows * out_stride),
        residual(shape.rows * out_stride),
        weights(shape.columns * shape.channels * shape.taps),
        bias(shape.columns),
        random_(seed) {}

  void fill_normal() {
    std::normal_distribution<float> normal;
    fill([&] { return normal(random_); });
  }
  // Integers that quantise exactly: activations span 255 steps of 1, weights are 7 bits.
  void fill_integers() {
    std::uniform_int_distribution<int> any(-127, 127), seven(-63, 63);
    fill([&] { return static_cast<float>(any(random_)); });
    for (float& w : weights) w = static_cast<float>(seven(random_));
  }
  void take_stats() {
    in_stats.rows = in_rows;
    in_stats.columns = in_stride;
    in_stats_values.assign(in_stats.tiles() * 4 * in_stats.columns, 0.0f);
    in_stats.values = in_stats_values.data();
    column_stats(in.data(), Storage::kF32, in_stride, in_rows, in_stride, in_stats, {0, in_stats.tiles()});
  }
  float weight(size_t n, size_t k, size_t t) const { return weights[(n * c.channels + k) * c.taps + t]; }
  ConvGeometry geometry() const { return {.rows = c.rows, .dilation = c.dilation, .stride = c.stride, .pad = c.pad}; }
  MatrixShape shape() const { return {.columns = c.columns, .channels = c.channels, .taps = c.taps}; }
  ConvInput input() const { return {.data = in.data(), .rows = in_rows, .stride = in_stride, .range = &in_stats}; }
  ConvOutput output() { return {.data = out.data(), .stride = out_stride}; }

  // The twin: sum of products of activate(in) with the weights, bias added.
  template <class Activate>
  Expected expected(size_t m, size_t n, const Activate& activate) const {
    Expected e;
    e.add(bias[n]);
    for (size_t t = 0; t < c.taps; ++t) {
      const ptrdiff_t row = static_cast<ptrdiff_t>(m * c.stride + t * c.dilation) - c.pad;
      if (row < 0 || row >= static_cast<ptrdiff_t>(in_rows)) continue;
      for (size_t k = 0; k < c.channels; ++k)
        e.add(activate(in[static_cast<size_t>(row) * in_stride + k], k), weight(n, k, t));
    }
    return e;
  }

 private:
  template <class Draw>
  void fill(const Draw& draw) {
    for (size_t r = 0; r < in_rows; ++r)
      for (size_t k = 0; k < c.channels; ++k) in[r * in_stride + k] = draw();
    for (size_t r = 0; r < c.rows; ++r)
      for (size_t n = 0; n < c.columns; ++n) residual[r * out_stride + n] = draw();
    for (float& w : weights) w = draw();
    for (float& b : bias) b = draw();
  }
  std::mt19937 random_;
};

void run(const PackedMatrix& matrix, Problem& p, const ConvInput& in, const ConvOutput& out) {
  std::vector<std::byte> scratch(conv_scratch_bytes(matrix, p.geometry()));
  conv(matrix, p.geometry(), in, out, {0, tile_count_for(p.c.rows)}, {0, matrix.panel_count()}, scratch);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const size_t channels : {1, 3, 4, 5, 17, 33})
    for (const size_t columns : {1, 15, 32, 37})
      for (const size_t rows : {1, 5, 13, 29}) all.push_back({channels, columns, 1, rows});
  all.push_back({22, 24, 12, 31, 1, 6, 3});  // noise convolution
  all.push_back({16, 40, 3, 40, 1, 1, 1});
  all.push_back({12, 33, 7, 45, 3, 1, 9});
  all.push_back({8, 8, 11, 300, 5, 1, 25});  // two tiles
  all.push_back({10, 70, 2, 17, 1, 1, 1});   // a transposed one's two taps
  all.push_back({130, 64, 5, 20, 1, 1, 2});
  return all;
}

constexpr auto kIdentity = [](float v, size_t) { return static_cast<double>(v); };

TEST(Conv, F32MatchesItsTwin) {
  for_each_target([] {
    uint32_t seed = 1;
    for (const Case& c : cases()) {
      Problem p(c, ++seed);
      p.fill_normal();
      const OwnedMatrix m = pack_f32(
          p.shape(), [&](size_t n, size_t k, size_t t) { return p.weight(n, k, t); }, p.bias);
      run(m.view, p, p.input(), p.output());
      for (size_t r = 0; r < c.rows; ++r)
        for (size_t n = 0; n < c.columns; ++n)
          ASSERT_TRUE(
              within(p.expected(r, n, kIdentity), sum_factor(c.taps * c.channels + 1), p.out[r * p.out_stride + n]))
              << "rows " << c.rows << " channels " << c.channels << " columns " << c.columns << " taps " << c.taps
              << " at " << r << ", " << n;
    }
  });
}

// With integer activations and weights every step of the int8 path is exact, whatever the zero points.
void expect_exact(Problem& p, const PackedMatrix& m, bool with_range) {
  ConvInput in = p.input();
  if (with_range) {
    // One row holds both ends of the range, so that the step is exactly 1.
    p.in[0] = -127.0f;
    p.in[p.in_stride * (p.in_rows - 1) + p.c.channels - 1] = 128.0f;
    p.take_stats();
    if (p.in_stats.tiles() > 1 || p.in_rows * p.c.channels < 2) return;
  } else {
    for (size_t r = 0; r < p.in_rows; ++r) p.in[r * p.in_stride] = 127.0f;
    in.range = nullptr;
  }
  run(m, p, in, p.output());
  for (size_t r = 0; r < p.c.rows; ++r)
    for (size_t n = 0; n < p.c.columns; ++n)
      ASSERT_TRUE(within(p.expected(r, n, kIdentity), 4.0, p.out[r * p.out_stride + n]))
          << "rows " << p.c.rows << " channels " << p.c.channels << " taps " << p.c.taps << " at " << r << ", " << n;
}

TEST(Conv, Int8SumsAreExact) {
  for_each_target([] {
    uint32_t seed = 100;
    for (const Case& c : cases()) {
      for (const int zero : {0, -64, 20}) {
        Problem p(c, ++seed);
        p.fill_integers();
        const float unit = 0.5f;
        // q = weight + zero must fit 7 bits: halve the weights.
        for (float& w : p.weights) w = std::trunc(w / 3.0f) * unit;
        const auto q = [&](size_t n, size_t k, size_t t) {
          return static_cast<int8_t>(std::clamp(std::lrint(p.weight(n, k, t) / unit) + zero, -64l, 64l));
        };
        for (size_t n = 0; n < c.columns; ++n)
          for (size_t k = 0; k < c.channels; ++k)
            for (size_t t = 0; t < c.taps; ++t)
              p.weights[(n * c.channels + k) * c.taps + t] = unit * static_cast<float>(q(n, k, t) - zero);
        const OwnedMatrix m = pack_quantised(p.shape(), q, std::span(&unit, 1), zero, p.bias);
        if (c.taps == 1 && c.stride == 1 && c.pad == 0) expect_exact(p, m.view, false);
        expect_exact(p, m.view, true);
      }
    }
  });
}

TEST(Conv, Int8ExtremesDoNotSaturate) {
  for_each_target([] {
    Problem p({64, 32, 3, 8, 1, 1, 1}, 7);
    p.fill_integers();
    for (float& v : p.in) v = 255.0f;
    for (float& w : p.weights) w = -64.0f;
    const float unit = 1.0f;
    const OwnedMatrix m = pack_quantised(
        p.shape(), [](size_t, size_t, size_t) { return static_cast<int8_t>(-64); }, std::span(&unit, 1), 0, p.bias);
    p.take_stats();
    run(m.view, p, p.input(), p.output());
    for (size_t r = 0; r < p.c.rows; ++r)
      for (size_t n = 0; n < p.c.columns; ++n)
        ASSERT_TRUE(within(p.expected(r, n, kIdentity), 4.0, p.out[r * p.out_stride + n]));
  });
}

TEST(Conv, FineActivationsKeepSixteenBits) {
  for_each_target([] {
    Problem p({70, 40, 1, 20}, 9);
    p.fill_normal();
    for (size_t r = 0; r < p.in_rows; ++r)
      p.in[r * p.in_stride + 5] = 40.0f;  // an outlier that costs one byte its detail
    OwnedMatrix m = pack_int8(
        p.shape(), [&](size_t n, size_t k, size_t t) { return p.weight(n, k, t); }, p.bias);
    // The twin uses the weights as quantised, so that only the activations' error is seen.
    for (size_t n = 0; n < p.c.columns; ++n)
      for (size_t k = 0; k < p.c.channels; ++k)
        p.weights[n * p.c.channels + k] = m.scale[n] * std::round(p.weight(n, k, 0) / m.scale[n]);
    m.view.fine = true;
    p.take_stats();  // a range changes nothing: each row keeps its own scale
    run(m.view, p, p.input(), p.output());
    const double step = 40.0 / 127.0 / 254.0;
    for (size_t r = 0; r < p.c.rows; ++r) {
      for (size_t n = 0; n < p.c.columns; ++n) {
        double weights = 0;
        for (size_t k = 0; k < p.c.channels; ++k) weights += std::abs(p.weight(n, k, 0));
        const Expected e = p.expected(r, n, kIdentity);
        ASSERT_NEAR(p.out[r * p.out_stride + n], e.value, 0.5 * step * weights + e.bound(16.0));
      }
    }
  });
}

TEST(Conv, ActivationsResidualsAndHalfStorage) {
  for_each_target([] {
    for (const Activation activation :
         {Activation::kNone, Activation::kLeakyRelu, Activation::kSnake, Activation::kElu}) {
      for (const Storage storage : {Storage::kF32, Storage::kF16}) {
        Problem p({19, 45, 3, 33, 2, 1, 2}, 11);
        p.fill_normal();
        std::vector<float> scale(32, 0.0f), shift(32, 0.0f), alpha(32, 0.0f), over_pi(32, 0.0f), inverse(32, 0.0f);
        for (size_t k = 0; k < p.c.channels; ++k) {
          scale[k] = 0.5f + 0.1f * static_cast<float>(k);
          shift[k] = 0.3f - 0.05f * static_cast<float>(k);
          alpha[k] = 0.2f + 0.15f * static_cast<float>(k);
          over_pi[k] = static_cast<float>(alpha[k] / M_PI);
          inverse[k] = 1.0f / alpha[k];
        }
        const OwnedMatrix m = pack_f32(
            p.shape(), [&](size_t n, size_t k, size_t t) { return p.weight(n, k, t); }, p.bias);
        ConvInput in = p.input();
        in.scale = scale.data();
        in.shift = shift.data();
        in.activation = activation;
        in.slope = 0.1f;
        in.alpha_over_pi = over_pi.data();
        in.inverse_alpha = inverse.data();
        Buffer<std::byte> stored(p.c.rows * p.out_stride * 4), residual(p.c.rows * p.out_stride * 4);
        for (size_t r = 0; r < p.c.rows; ++r)
          write_row(p.residual.data() + r * p.out_stride, storage, p.out_stride,
                    residual.data() + r * p.out_stride * storage_bytes(storage));
        run(m.view, p, in,
            {.data = stored.data(),
             .storage = storage,
             .stride = p.out_stride,
             .residual = residual.data(),
             .residual_stride = p.out_stride,
             .addend = residual.data(),
             .addend_stride = p.out_stride,
             .factor = 0.5f});
        const auto activate = [&](float v, size_t k) {
          double y = static_cast<double>(v) * scale[k] + shift[k];
          if (activation == Activation::kLeakyRelu && y < 0) y *= in.slope;
          if (activation == Activation::kElu && y < 0) y = std::expm1(y);
          if (activation == Activation::kSnake) y += std::pow(std::sin(alpha[k] * y), 2) / alpha[k];
          return y;
        };
        std::vector<float> row(p.out_stride), added(p.out_stride);
        for (size_t r = 0; r < p.c.rows; ++r) {
          read_row(stored.data() + r * p.out_stride * storage_bytes(storage), storage, p.out_stride, row.data());
          read_row(residual.data() + r * p.out_stride * storage_bytes(storage), storage, p.out_stride, added.data());
          for (size_t n = 0; n < p.c.columns; ++n) {
            Expected e = p.expected(r, n, activate);
            e.add(added[n], 2.0);
            const double half = storage == Storage::kF16 ? std::abs(e.value) / 2048.0 : 0.0;
            // Snake's polynomial: 4e-7 / alpha absolute on each activation.
            const double snake = activation == Activation::kSnake ? 4e-7 / 0.2 * e.magnitude : 0.0;
            ASSERT_NEAR(row[n], 0.5 * e.value, 0.5 * (e.bound(p.c.channels * 3 + 20.0) + snake) + half)
                << "activation " << static_cast<int>(activation) << " at " << r << ", " << n;
          }
        }
      }
    }
  });
}

TEST(Conv, StatisticsDescribeStoredValues) {
  for_each_target([] {
    Problem p({6, 40, 3, 600, 1, 1, 1}, 13);
    p.fill_normal();
    for (float& b : p.bias) b += 50.0f;  // a mean far from zero, where a naive sum of squares would lose digits
    const OwnedMatrix m = pack_f32(
        p.shape(), [&](size_t n, size_t k, size_t t) { return p.weight(n, k, t); }, p.bias);
    TileStats stats{.columns = 64, .rows = p.c.rows};
    std::vector<float> values(stats.tiles() * 4 * stats.columns), again(values.size());
    stats.values = values.data();
    ConvOutput out = p.output();
    out.stats = &stats;
    run(m.view, p, p.input(), out);
    TileStats scanned = stats;
    scanned.values = again.data();
    column_stats(p.out.data(), Storage::kF32, p.out_stride, p.c.rows, 64, scanned, {0, stats.tiles()});
    ASSERT_GT(stats.tiles(), 1u);
    for (size_t t = 0; t < stats.tiles(); ++t) {
      const size_t first = t * stats.tile_rows(), last = std::min(p.c.rows, first + stats.tile_rows());
      for (size_t n = 0; n < p.c.columns; ++n) {
        double sum = 0, squares = 0, least = 1e30, greatest = -1e30;
        for (size_t r = first; r < last; ++r) {
          const double v = p.out[r * p.out_stride + n];
          sum += v;
          least = std::min(least, v);
          greatest = std::max(greatest, v);
        }
        const double mean = sum / static_cast<double>(last - first);
        for (size_t r = first; r < last; ++r) squares += std::pow(p.out[r * p.out_stride + n] - mean, 2);
        for (const TileStats& s : {stats, scanned}) {
          ASSERT_NEAR(s.mean(t)[n], mean, 1e-6 * std::abs(mean) + 1e-5);
          ASSERT_NEAR(s.squares(t)[n], squares, 1e-4 * squares + 1e-4);
          ASSERT_EQ(s.least(t)[n], static_cast<float>(least));
          ASSERT_EQ(s.greatest(t)[n], static_cast<float>(greatest));
        }
      }
    }
  });
}

TEST(Conv, AnySplitOfTheWorkGivesTheSameBits) {
  for (const bool int8 : {false, true}) {
    Problem p({24, 100, 3, 530, 1, 1, 1}, 17);
    p.fill_normal();
    p.take_stats();
    const auto at = [&](size_t n, size_t k, size_t t) { return p.weight(n, k, t); };
    const OwnedMatrix m = int8 ? pack_int8(p.shape(), at, p.bias) : pack_f32(p.shape(), at, p.bias);
    run(m.view, p, p.input(), p.output());
    const std::vector<float> whole(p.out.begin(), p.out.end());
    std::fill(p.out.begin(), p.out.end(), 0.0f);
    std::vector<std::byte> scratch(conv_scratch_bytes(m.view, p.geometry()));
    for (size_t t = 0; t < tile_count_for(p.c.rows); ++t)
      for (size_t n = 0; n < m.view.panel_count(); ++n)
        conv(m.view, p.geometry(), p.input(), p.output(), {t, t + 1}, {n, n + 1}, scratch);
    EXPECT_TRUE(std::equal(whole.begin(), whole.end(), p.out.begin())) << "int8 " << int8;
  }
}

TEST(Conv, NothingIsDoneForNoRows) {
  Problem p({4, 8, 1, 1}, 3);
  const OwnedMatrix m = pack_f32(
      p.shape(), [](size_t, size_t, size_t) { return 1.0f; }, p.bias);
  std::vector<std::byte> scratch(conv_scratch_bytes(m.view, {.rows = 0}));
  conv(m.view, {.rows = 0}, p.input(), p.output(), {0, 0}, {0, 1}, scratch);
  EXPECT_EQ(p.out[0], 0.0f);
}

TEST(Gemv, MatchesItsTwin) {
  for_each_target([] {
    uint32_t seed = 200;
    for (const size_t depth : {4, 8, 20, 36, 256}) {
      for (const size_t columns : {1, 31, 32, 130, 300}) {
        Problem p({depth, columns, 1, 1}, ++seed);
        p.fill_integers();
        p.in[0] = 127.0f;
        const auto at = [&](size_t n, size_t k, size_t t) { return p.weight(n, k, t); };
        const float unit = 1.0f;
        const OwnedMatrix f32 = pack_f32(p.shape(), at, p.bias);
        const OwnedMatrix int8 = pack_quantised(
            p.shape(), [&](size_t n, size_t k, size_t t) { return static_cast<int8_t>(at(n, k, t)); },
            std::span(&unit, 1), 0, p.bias);
        for (const OwnedMatrix* m : {&f32, &int8}) {
          std::vector<std::byte> scratch(gemv_scratch_bytes(m->view));
          std::vector<float> y(m->view.padded_columns());
          gemv(m->view, p.in.data(), p.residual.data(), y.data(), {0, m->view.panel_count()}, scratch);
          for (size_t n = 0; n < columns; ++n) {
            Expected e = p.expected(0, n, kIdentity);
            e.add(p.residual[n]);
            ASSERT_TRUE(within(e, sum_factor(depth + 2), y[n])) << "depth " << depth << " column " << n;
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace syrinx::kernels
