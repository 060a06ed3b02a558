#include "kernels/row_conv.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/check.h"
#include "base/cpu_info.h"
#include "kernels/cpu/narrow_block.h"
#include "kernels/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_conv.cc"
#if defined(__aarch64__)
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)  // sums live in arrays of vectors
#endif
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/bf16-inl.h"
#include "kernels/cpu/gemm_block.h"
#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {

using F32 = hn::ScalableTag<float>;
using U32 = hn::ScalableTag<uint32_t>;
using VF = hn::Vec<F32>;

// Rows of a block: with two vectors of columns the sums leave room for the operands.  12 also divides the rows of a
// Mimi frame behind its first upsampling (96, 480, 1920).
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
inline constexpr size_t kMaxRows = 12;
#else
inline constexpr size_t kMaxRows = 6;
#endif

// Weights are fetched 4 KiB before they are needed: a layer's come from memory or from the third-level cache.  Half and
// twice the distance gave the same on Zen 4.
HWY_INLINE void prefetch(const uint32_t* panel) {
  constexpr size_t kAhead = 1024, kLine = 16;  // words
  hwy::Prefetch(panel + kAhead);
  hwy::Prefetch(panel + kAhead + kLine);
}

// sums[r] += x[r * row_stride] * (w0, w1)
template <size_t kRows>
HWY_INLINE void add_products(const float* HWY_RESTRICT x, size_t row_stride, VF w0, VF w1, VF (&sum0)[kRows],
                             VF (&sum1)[kRows]) {
  const F32 d;
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    const VF v = hn::Set(d, x[r * row_stride]);
    sum0[r] = hn::MulAdd(v, w0, sum0[r]);
    sum1[r] = hn::MulAdd(v, w1, sum1[r]);
  }
}

// c[r][0, 2 lanes) for kRows rows; `panel` points to the first of these columns.
template <PanelType kType, size_t kRows>
HWY_NOINLINE void sum_columns(const float* HWY_RESTRICT x, const BlockGeometry& g, const uint32_t* HWY_RESTRICT panel,
                              float* HWY_RESTRICT c) {
  const F32 d;
  const U32 du;
  const size_t lanes = hn::Lanes(d);
  VF sum0[kRows], sum1[kRows];
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) sum0[r] = sum1[r] = hn::Zero(d);
  for (size_t t = 0; t < g.taps; ++t) {
    const float* HWY_RESTRICT tap = x + t * g.tap_stride;
    if constexpr (kType == PanelType::kBf16) {
      // A word holds the same column of two depths, the first in its lower half.
      for (size_t k = 0; k < g.depth; k += 2, panel += kPanelColumns) {
        prefetch(panel);
        const auto pair0 = hn::LoadU(du, panel), pair1 = hn::LoadU(du, panel + lanes);
        add_products(tap + k, g.row_stride, hn::BitCast(d, hn::ShiftLeft<16>(pair0)),
                     hn::BitCast(d, hn::ShiftLeft<16>(pair1)), sum0, sum1);
        const auto upper = hn::Set(du, 0xFFFF0000u);
        add_products(tap + k + 1, g.row_stride, hn::BitCast(d, hn::And(pair0, upper)),
                     hn::BitCast(d, hn::And(pair1, upper)), sum0, sum1);
      }
    } else {
      for (size_t k = 0; k < g.depth; ++k, panel += kPanelColumns) {
        prefetch(panel);
        const float* const w = reinterpret_cast<const float*>(panel);
        add_products(tap + k, g.row_stride, hn::LoadU(d, w), hn::LoadU(d, w + lanes), sum0, sum1);
      }
    }
  }
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    hn::StoreU(sum0[r], d, c + r * kPanelColumns);
    hn::StoreU(sum1[r], d, c + r * kPanelColumns + lanes);
  }
}

// Calls block<rows>() for rows in [1, kMax].
template <size_t kMax, class Block>
HWY_INLINE void with_rows(size_t rows, const Block& block) {
  if (rows == kMax) return block(std::integral_constant<size_t, kMax>());
  if constexpr (kMax > 1) with_rows<kMax - 1>(rows, block);
}

void sum_panel(PanelType type, const float* x, const BlockGeometry& g, const uint32_t* panel, size_t rows, float* c) {
  with_rows<kMaxRows>(rows, [&](auto count) {
    for (size_t n = 0; n < kPanelColumns; n += 2 * hn::Lanes(F32())) {
      if (type == PanelType::kBf16) {
        sum_columns<PanelType::kBf16, count>(x, g, panel + n, c + n);
      } else {
        sum_columns<PanelType::kF32, count>(x, g, panel + n, c + n);
      }
    }
  });
}

// The same for rows of bf16 without a dot instruction: a word of a row holds two depths, as one of a panel does.
template <size_t kRows>
HWY_NOINLINE void sum_pairs(const NarrowBlock& x, const uint32_t* HWY_RESTRICT panel, float* HWY_RESTRICT c) {
  const F32 d;
  const U32 du;
  const size_t lanes = hn::Lanes(d);
  const auto low = [&](auto pair) { return hn::BitCast(d, hn::ShiftLeft<16>(pair)); };
  const auto high = [&](auto pair) { return hn::BitCast(d, hn::And(pair, hn::Set(du, 0xFFFF0000u))); };
  VF sum0[kRows], sum1[kRows];
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) sum0[r] = sum1[r] = hn::Zero(d);
  const std::byte* tap = x.rows;
  for (size_t t = 0; t < x.taps; ++t, tap += x.tap_stride) {
    for (size_t k = 0; k < x.depth; k += 2, panel += kPanelColumns) {
      prefetch(panel);
      const auto w0 = hn::LoadU(du, panel), w1 = hn::LoadU(du, panel + lanes);
      SYRINX_UNROLL
      for (size_t r = 0; r < kRows; ++r) {
        uint32_t word;
        std::memcpy(&word, tap + r * x.stride + k * sizeof(uint16_t), sizeof word);
        const auto pair = hn::Set(du, word);
        sum0[r] = hn::MulAdd(high(pair), high(w0), hn::MulAdd(low(pair), low(w0), sum0[r]));
        sum1[r] = hn::MulAdd(high(pair), high(w1), hn::MulAdd(low(pair), low(w1), sum1[r]));
      }
    }
  }
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    hn::StoreU(sum0[r], d, c + r * kPanelColumns);
    hn::StoreU(sum1[r], d, c + r * kPanelColumns + lanes);
  }
}

void bf16_panel(const NarrowBlock& x, const uint16_t* panel, size_t rows, float* c) {
  with_rows<kMaxRows>(rows, [&](auto count) {
    for (size_t n = 0; n < kPanelColumns; n += 2 * hn::Lanes(F32()))
      sum_pairs<count>(x, reinterpret_cast<const uint32_t*>(panel) + n, c + n);
  });
}

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3
// Here the product of pairs keeps its lane.
template <size_t kRows>
HWY_NOINLINE void sum_int16(const int16_t* HWY_RESTRICT rows, size_t stride, size_t depth,
                            const int16_t* HWY_RESTRICT panel, const float* HWY_RESTRICT scale, float* HWY_RESTRICT c) {
  const F32 d;
  const hn::RebindToSigned<F32> di;
  const hn::Repartition<int16_t, F32> d16;
  const size_t lanes = hn::Lanes(d);
  auto unused = hn::Zero(di);
  hn::Vec<decltype(di)> sum0[kRows], sum1[kRows];
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) sum0[r] = sum1[r] = hn::Zero(di);
  for (size_t k = 0; k < depth; k += 2, panel += 2 * kPanelColumns) {
    prefetch(reinterpret_cast<const uint32_t*>(panel));
    const auto w0 = hn::LoadU(d16, panel), w1 = hn::LoadU(d16, panel + 2 * lanes);
    SYRINX_UNROLL
    for (size_t r = 0; r < kRows; ++r) {
      int32_t word;
      std::memcpy(&word, rows + r * stride + k, sizeof word);
      const auto pair = hn::BitCast(d16, hn::Set(di, word));
      sum0[r] = hn::ReorderWidenMulAccumulate(di, pair, w0, sum0[r], unused);
      sum1[r] = hn::ReorderWidenMulAccumulate(di, pair, w1, sum1[r], unused);
    }
  }
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    const VF own = hn::Set(d, scale[r]);
    float* const to = c + r * kPanelColumns;
    hn::StoreU(hn::MulAdd(hn::ConvertTo(d, sum0[r]), own, hn::LoadU(d, to)), d, to);
    hn::StoreU(hn::MulAdd(hn::ConvertTo(d, sum1[r]), own, hn::LoadU(d, to + lanes)), d, to + lanes);
  }
}

template <size_t kRows>
void int16_columns(const Int16Block& x, const int16_t* panel, float* c) {
  for (size_t t = 0; t < x.taps; ++t) {
    for (size_t k = 0; k < x.depth; k += kInt16Run) {
      const size_t depth = std::min(kInt16Run, x.depth - k);
      sum_int16<kRows>(x.rows + t * x.tap_stride + k, x.stride, depth, panel, x.scale + t * x.scale_step, c);
      panel += depth * kPanelColumns;
    }
  }
}

void int16_panel(const Int16Block& x, const int16_t* panel, size_t rows, float* c) {
  with_rows<kMaxRows>(rows, [&](auto count) {
    for (size_t n = 0; n < kPanelColumns; n += 2 * hn::Lanes(F32())) int16_columns<count>(x, panel + 2 * n, c + n);
  });
}
#else
void int16_panel(const Int16Block& x, const int16_t* panel, size_t rows, float* c) {
  for (size_t t = 0; t < x.taps; ++t) {
    for (size_t k = 0; k < x.depth; k += kInt16Run) {
      const size_t depth = std::min(kInt16Run, x.depth - k);
      for (size_t r = 0; r < rows; ++r) {
        const int16_t* const a = x.rows + r * x.stride + t * x.tap_stride + k;
        int32_t sums[kPanelColumns] = {};
        for (size_t i = 0; i < depth; i += 2) {
          const int16_t* const w = panel + i * kPanelColumns;
          for (size_t n = 0; n < kPanelColumns; ++n) sums[n] += a[i] * w[2 * n] + a[i + 1] * w[2 * n + 1];
        }
        const float own = x.scale[r + t * x.scale_step];
        for (size_t n = 0; n < kPanelColumns; ++n) c[r * kPanelColumns + n] += static_cast<float>(sums[n]) * own;
      }
      panel += depth * kPanelColumns;
    }
  }
}
#endif

// [rows, 32] times a scale a column.
void scale_columns(const float* scale, size_t rows, float* c) {
  const F32 d;
  for (size_t n = 0; n < kPanelColumns; n += hn::Lanes(d)) {
    const VF own = hn::LoadU(d, scale + n);
    for (size_t r = 0; r < rows; ++r)
      hn::StoreU(hn::Mul(hn::LoadU(d, c + r * kPanelColumns + n), own), d, c + r * kPanelColumns + n);
  }
}

// The largest magnitude of a row as bits, which order as magnitudes do, infinity and NaN behind all numbers.
int32_t largest_bits(const float* row, size_t count) {
  const F32 d;
  const hn::RebindToSigned<F32> di;
  const size_t lanes = hn::Lanes(d);
  const auto magnitude = [&](VF v) HWY_ATTR { return hn::And(hn::BitCast(di, v), hn::Set(di, 0x7FFFFFFF)); };
  auto most = hn::Zero(di);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) most = hn::Max(most, magnitude(hn::LoadU(d, row + i)));
  if (i < count) most = hn::Max(most, magnitude(load_n(d, row + i, count - i)));
  return hn::GetLane(hn::MaxOfLanes(di, most));
}

void quantise_rows_target(View<const float, 2> rows, int16_t* to, size_t stride, float* scale) {
  const F32 d;
  const hn::Rebind<int16_t, F32> d16;
  const size_t lanes = hn::Lanes(d), count = rows.extent(1);
  for (size_t m = 0; m < rows.extent(0); ++m, to += stride) {
    const int32_t bits = largest_bits(rows.row(m), count);
    float most;
    std::memcpy(&most, &bits, sizeof most);
    const bool finite = std::isfinite(most), plain = finite && most > 1e-30f;
    scale[m] = finite ? (plain ? most / kInt16Activation : 0.0f) : std::numeric_limits<float>::quiet_NaN();
    std::fill_n(to + count / lanes * lanes, stride - count / lanes * lanes, int16_t{0});
    if (!plain) {
      std::fill_n(to, stride, int16_t{0});
      continue;
    }
    const VF inverse = hn::Set(d, kInt16Activation / most);
    const auto whole = [&](VF v) HWY_ATTR { return hn::DemoteTo(d16, hn::NearestInt(hn::Mul(v, inverse))); };
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) hn::StoreU(whole(hn::LoadU(d, rows.row(m) + i)), d16, to + i);
    if (i == count) continue;
    HWY_ALIGN int16_t last[hn::MaxLanes(F32())];
    hn::StoreU(whole(load_n(d, rows.row(m) + i, count - i)), d16, last);
    std::copy_n(last, count - i, to + i);
  }
}

// Numbers of kSnakeBeta for a vector of columns.
struct SnakeColumns {
  VF alpha, inverse_beta;
};

template <RowActivation kActivation>
HWY_INLINE SnakeColumns snake_columns(const SnakeBeta& snake, size_t column) {
  const F32 d;
  if constexpr (kActivation == RowActivation::kSnakeBeta)
    return {hn::LoadU(d, snake.alpha + column), hn::LoadU(d, snake.inverse_beta + column)};
  return {hn::Zero(d), hn::Zero(d)};
}

template <RowActivation kActivation>
HWY_INLINE VF activate(VF y, const SnakeColumns& snake) {
  const F32 d;
  if constexpr (kActivation == RowActivation::kSnakeBeta) {
    const VF sine = Sin(d, hn::Mul(y, snake.alpha));
    return hn::MulAdd(hn::Mul(sine, sine), snake.inverse_beta, y);
  }
  if constexpr (kActivation == RowActivation::kElu) return Elu(d, y);
  if constexpr (kActivation == RowActivation::kGeluTanh) return GeluTanh(d, y);
  if constexpr (kActivation == RowActivation::kGeluErf) return GeluErf(d, y);
  if constexpr (kActivation == RowActivation::kSilu) return hn::Mul(y, Sigmoid(d, y));
  return y;
}

// Rounds [rows, 32] floats, as StoreBf16 does but for denormal numbers, which become zero.
using RoundPanel = void (*)(const float* values, size_t rows, uint16_t* to, size_t stride);

// From the sums of `rows` rows to what is stored, at `row` and `column` of the output; two vectors of columns at a
// time.  With `round` the sums make room for activated values, rounded behind them.
template <RowActivation kActivation>
void finish_block(const PackedMatrix& matrix, const RowConv& given, float* c, size_t row, size_t rows, size_t column,
                  RoundPanel round) {
  const RowConv conv = given;  // in registers: what is stored is not part of it
  const F32 d;
  const size_t lanes = hn::Lanes(d), first = row * conv.stride + column;
  const VF one = hn::Set(d, 1.0f);
  float* sums_of_columns = c;
  for (size_t n = 0; n < kPanelColumns; n += 2 * lanes, sums_of_columns += 2 * lanes, column += 2 * lanes) {
    const VF bias0 = hn::LoadU(d, matrix.bias + column), bias1 = hn::LoadU(d, matrix.bias + column + lanes);
    const VF scale0 = conv.scale == nullptr ? one : hn::LoadU(d, conv.scale + column);
    const VF scale1 = conv.scale == nullptr ? one : hn::LoadU(d, conv.scale + column + lanes);
    const SnakeColumns snake0 = snake_columns<kActivation>(conv.snake, column);
    const SnakeColumns snake1 = snake_columns<kActivation>(conv.snake, column + lanes);
    for (size_t r = 0; r < rows; ++r) {
      float* const sums = sums_of_columns + r * kPanelColumns;
      VF y0 = hn::Mul(hn::Add(hn::LoadU(d, sums), bias0), scale0);
      VF y1 = hn::Mul(hn::Add(hn::LoadU(d, sums + lanes), bias1), scale1);
      if (conv.residual != nullptr) {
        const float* const residual = conv.residual + (row + r) * conv.residual_stride + column;
        y0 = hn::Add(y0, hn::LoadU(d, residual));
        y1 = hn::Add(y1, hn::LoadU(d, residual + lanes));
      }
      const size_t at = (row + r) * conv.stride + column;
      if (conv.output != nullptr) {
        hn::StoreU(y0, d, conv.output + at);
        hn::StoreU(y1, d, conv.output + at + lanes);
      }
      if (conv.activated == nullptr) continue;
      const VF a0 = activate<kActivation>(y0, snake0), a1 = activate<kActivation>(y1, snake1);
      if (conv.activated_type == RowType::kBf16 && round == nullptr) {
        StoreBf16(d, a0, a1, static_cast<uint16_t*>(conv.activated) + at);
      } else {
        float* const to = round == nullptr ? static_cast<float*>(conv.activated) + at : sums;
        hn::StoreU(a0, d, to);
        hn::StoreU(a1, d, to + lanes);
      }
    }
  }
  if (round != nullptr) round(c, rows, static_cast<uint16_t*>(conv.activated) + first, conv.stride);
}

void finish(const PackedMatrix& matrix, const RowConv& conv, float* c, size_t row, size_t rows, size_t column,
            RoundPanel round) {
  switch (conv.activation) {
    case RowActivation::kNone: return finish_block<RowActivation::kNone>(matrix, conv, c, row, rows, column, round);
    case RowActivation::kElu: return finish_block<RowActivation::kElu>(matrix, conv, c, row, rows, column, round);
    case RowActivation::kGeluTanh:
      return finish_block<RowActivation::kGeluTanh>(matrix, conv, c, row, rows, column, round);
    case RowActivation::kGeluErf:
      return finish_block<RowActivation::kGeluErf>(matrix, conv, c, row, rows, column, round);
    case RowActivation::kSilu: return finish_block<RowActivation::kSilu>(matrix, conv, c, row, rows, column, round);
    case RowActivation::kSnakeBeta:
      return finish_block<RowActivation::kSnakeBeta>(matrix, conv, c, row, rows, column, round);
  }
}

void row_conv_target(const PackedMatrix& matrix, const RowConv& conv, Range rows, Range panels) {
  const BlockGeometry g{
      .row_stride = conv.row_step, .taps = matrix.taps, .tap_stride = conv.tap_step, .depth = matrix.depth()};
  auto* multiply_bf16 = &bf16_panel;
  auto* multiply_int16 = &int16_panel;
  RoundPanel round = nullptr;
#if HWY_TARGET == HWY_AVX3
  if (use_avx512_vnni()) multiply_int16 = &int16_rows_vnni;
  if (use_avx512_bf16()) multiply_bf16 = &bf16_rows_avx512;
  if (use_avx512_bf16() && conv.activated != nullptr && conv.activated_type == RowType::kBf16)
    round = &round_panel_avx512;
#elif HWY_TARGET == HWY_NEON
  if (use_neon_bf16()) multiply_bf16 = &bf16_rows_neon;
#endif
  alignas(64) float c[kMaxRows * kPanelColumns];
  const int blocks = static_cast<int>((rows.end - rows.begin + kMaxRows - 1) / kMaxRows);
  for (size_t p = panels.begin; p < panels.end; ++p) {
    const auto* const panel =
        reinterpret_cast<const uint32_t*>(static_cast<const std::byte*>(matrix.panels) + p * matrix.panel_bytes());
    for (int b = 0; b < blocks; ++b) {
      const Range block = split_range(rows.end - rows.begin, b, blocks);  // 16 rows as 8 and 8
      const size_t row = rows.begin + block.begin, count = block.end - block.begin, first = row * conv.row_step;
      if (conv.input_type == RowType::kInt16) {
        const Int16Block x{.rows = static_cast<const int16_t*>(conv.input) + first,
                           .stride = conv.row_step,
                           .depth = matrix.depth(),
                           .taps = matrix.taps,
                           .tap_stride = conv.tap_step,
                           .scale = conv.row_scale + row,
                           .scale_step = conv.tap_step / conv.row_step};
        std::fill_n(c, count * kPanelColumns, 0.0f);
        multiply_int16(x, reinterpret_cast<const int16_t*>(panel), count, c);
        scale_columns(matrix.scale + p * kPanelColumns, count, c);
      } else if (conv.input_type == RowType::kBf16) {
        const NarrowBlock x{.rows = static_cast<const std::byte*>(conv.input) + row_bytes(RowType::kBf16, first),
                            .stride = row_bytes(RowType::kBf16, conv.row_step),
                            .depth = matrix.depth(),
                            .taps = matrix.taps,
                            .tap_stride = row_bytes(RowType::kBf16, conv.tap_step)};
        multiply_bf16(x, reinterpret_cast<const uint16_t*>(panel), count, c);
      } else {
        sum_panel(matrix.type, static_cast<const float*>(conv.input) + first, g, panel, count, c);
      }
      finish(matrix, conv, c, row, count, p * kPanelColumns, round);
    }
  }
}

void row_dot_target(const float* weights, size_t length, float bias, const float* input, size_t row_step, float* output,
                    Range rows) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  for (size_t m = rows.begin; m < rows.end; ++m) {
    const float* const x = input + m * row_step;
    VF sum0 = hn::Zero(d), sum1 = sum0;
    size_t j = 0;
    for (; j + 2 * lanes <= length; j += 2 * lanes) {
      sum0 = hn::MulAdd(hn::LoadU(d, x + j), hn::LoadU(d, weights + j), sum0);
      sum1 = hn::MulAdd(hn::LoadU(d, x + j + lanes), hn::LoadU(d, weights + j + lanes), sum1);
    }
    for (; j < length; j += lanes) {
      const size_t count = std::min(lanes, length - j);
      sum0 = hn::MulAdd(load_n(d, x + j, count), load_n(d, weights + j, count), sum0);
    }
    output[m] = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1))) + bias;
  }
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(row_conv_target);
HWY_EXPORT(row_dot_target);
HWY_EXPORT(quantise_rows_target);

namespace {

constexpr size_t kRowGrain = 12;                // whole blocks on every target
constexpr size_t kRowsAMember = 3 * kRowGrain;  // fewer, and the uneven ends of the ranges would weigh too much

}  // namespace

bool bf16_rows_are_faster() { return use_avx512_bf16() && cpu_info().avx512_bf16_fast; }

bool int16_rows_are_fast() {
#if HWY_ARCH_X86
  const std::string target = chosen_target_name();
  return target == "AVX2" || target == "AVX3";
#else
  return false;
#endif
}

void quantise_rows(View<const float, 2> rows, int16_t* to, size_t stride, float* scale) {
  HWY_DYNAMIC_DISPATCH(quantise_rows_target)(rows, to, stride, scale);
}

void row_conv(const PackedMatrix& matrix, const RowConv& conv, Range rows, Range panels) {
  SYRINX_DCHECK(matrix.type == PanelType::kInt16
                    ? conv.input_type == RowType::kInt16 && conv.tap_step % conv.row_step == 0
                    : conv.input_type == RowType::kF32 ||
                          (matrix.type == PanelType::kBf16 && conv.input_type == RowType::kBf16));
  SYRINX_DCHECK(conv.activated_type != RowType::kInt16);
  SYRINX_DCHECK(rows.end <= conv.rows && panels.end <= matrix.panel_count());
  HWY_DYNAMIC_DISPATCH(row_conv_target)(matrix, conv, rows, panels);
}

RowConvShare share_row_conv(const PackedMatrix& matrix, size_t rows, int member, int members, size_t grain) {
  const size_t panels = matrix.panel_count();
  if (rows >= kRowsAMember * static_cast<size_t>(members) || panels < grain * static_cast<size_t>(members))
    return {split_range(rows, member, members, kRowGrain), {0, panels}};
  return {{0, rows}, split_range(panels, member, members, grain)};
}

void row_dot(const float* weights, size_t length, float bias, const float* input, size_t row_step, float* output,
             Range rows) {
  HWY_DYNAMIC_DISPATCH(row_dot_target)(weights, length, bias, input, row_step, output, rows);
}

}  // namespace syrinx::kernels
#endif  // HWY_ONCE
