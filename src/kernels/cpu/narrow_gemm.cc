#include "kernels/narrow_gemm.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/cpu/narrow_block.h"
#include "kernels/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/narrow_gemm.cc"
#if defined(__aarch64__)
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)  // sums live in arrays of vectors
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/bf16-inl.h"
#include "kernels/cpu/narrow_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {

// A block's whole sums of int8, whose weights come as bytes.
template <auto kRows>
void int8_block_sums(const NarrowBlock& x, const std::byte* weights, size_t rows, int32_t* c) {
  kRows(x, reinterpret_cast<const int8_t*>(weights), rows, c);
}
template <bool kOffsets, auto kSums>
void blocks(const NarrowBlock& x, const BlockScales& scales, const std::byte* panel, size_t rows, float* c) {
  block_rows<kOffsets>(x, scales, panel, rows, c, kSums);
}

// The products of this target, chosen once a call.
using BlockProduct = void (*)(const NarrowBlock&, const BlockScales&, const std::byte*, size_t, float*);
struct Products {
  void (*int8)(const NarrowBlock&, const int8_t*, size_t, int32_t*) = &int8_rows;
  void (*int4)(const NarrowBlock&, const int32_t*, const std::byte*, size_t, float*) = &int4_rows;
  void (*bf16)(const NarrowBlock&, const uint16_t*, size_t, float*) = &bf16_rows;
  BlockProduct int8_blocks = &blocks<false, int8_block_sums<int8_rows>>, int4_blocks = &blocks<true, int4_sums>;
  int32_t int8_offset = 0;  // what int8 adds to each byte of the activations
  bool bf16_pairs = false;  // bf16 takes activations in two bytes, not as rounded f32
};

Products choose_products() {
  Products p;
#if HWY_TARGET == HWY_AVX3
  if (use_avx512_vnni()) {
    p.int8 = &int8_rows_vnni;
    p.int4 = &int4_rows_vnni;
    p.int8_blocks = &int8_blocks_vnni;
    p.int4_blocks = &int4_blocks_vnni;
    p.int8_offset = 128;
  }
  if (use_avx512_bf16()) {
    p.bf16 = &bf16_rows_avx512;
    p.bf16_pairs = true;
  }
#elif HWY_TARGET == HWY_NEON
  if (use_neon_dotprod()) {
    p.int8 = &int8_rows_dotprod;
    p.int4 = &int4_rows_dotprod;
    p.int8_blocks = &blocks<false, int8_block_sums<int8_rows_dotprod>>;
    p.int4_blocks = &blocks<true, int4_sums_dotprod>;
  }
#endif
  return p;
}

// The largest size in a row padded to whole 32, plus not a number if a value is not finite.
float row_range(const float* x, size_t channels, float& fault) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  VF most0 = hn::Zero(d), most1 = most0, strange0 = most0, strange1 = most0;  // v - v is zero, or not a number
  for (size_t k = 0; k < channels; k += 2 * lanes) {
    const VF v0 = hn::LoadU(d, x + k), v1 = hn::LoadU(d, x + k + lanes);
    most0 = hn::Max(most0, hn::Abs(v0));
    most1 = hn::Max(most1, hn::Abs(v1));
    strange0 = hn::Add(strange0, hn::Sub(v0, v0));
    strange1 = hn::Add(strange1, hn::Sub(v1, v1));
  }
  fault = hn::GetLane(hn::SumOfLanes(d, hn::Add(strange0, strange1)));
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(most0, most1)));
}

// Whole numbers from -128 to 127, or of unsigned bytes.
HWY_INLINE void store_bytes(hn::Vec<I32> q, bool is_unsigned, std::byte* to) {
#if HWY_TARGET == HWY_AVX3
  (void)is_unsigned;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(q.raw));
#else
  if (is_unsigned) {
    hn::StoreU(hn::DemoteTo(U8(), q), U8(), reinterpret_cast<uint8_t*>(to));
  } else {
    hn::StoreU(hn::DemoteTo(I8(), q), I8(), reinterpret_cast<int8_t*>(to));
  }
#endif
}

// One row in bytes plus `offset`, the same behind; returns its scale, which is not finite if a value is not.  Writes
// whole vectors: a row of scratch has room for one behind its depth.
float quantise_row(const float* x, size_t channels, size_t depth, int32_t offset, std::byte* to) {
  const F32 d;
  const I32 di;
  const size_t lanes = hn::Lanes(d);
  float fault = 0.0f;
  const float range = row_range(x, channels, fault);
  const VF inverse = hn::Set(d, range > 1e-30f ? 127.0f / range : 0.0f);
  // Adding 1.5 * 2^23 rounds to the nearest whole number, halves to even, and leaves it in the low bits.
  const VF magic = hn::Set(d, 12582912.0f);
  const auto away = hn::Sub(hn::BitCast(di, magic), hn::Set(di, offset));
  for (size_t k = 0; k < channels; k += lanes) {
    const VF rounded = hn::Add(hn::Mul(hn::LoadU(d, x + k), inverse), magic);
    store_bytes(hn::Sub(hn::BitCast(di, rounded), away), offset != 0, to + k);
  }
  const size_t written = std::min(depth, round_up(channels, lanes));
  std::memset(to + written, offset, depth - written);
  return range / 127.0f + fault;
}

int32_t sum_of_bytes(const std::byte* bytes, size_t count) {
  int32_t sum = 0;
  for (size_t k = 0; k < count; ++k) sum += static_cast<int8_t>(bytes[k]);
  return sum;
}

// -8 times the sum of each group's bytes.
void group_terms(const std::byte* row, size_t groups, int32_t* terms) {
  for (size_t g = 0; g < groups; ++g, row += kInt4Group) terms[g] = -8 * sum_of_bytes(row, kInt4Group);
}

// A row's blocks in bytes, with their scales and sums; channels behind the last are zeros up to the block's end.
void quantise_blocks(const float* x, size_t channels, size_t depth, std::byte* to, float* scales, int32_t* sums) {
  for (size_t k = 0; k < depth; k += kBlockInputs, to += kBlockInputs) {
    *scales++ = quantise_row(x + k, std::min(kBlockInputs, channels - k), kBlockInputs, 0, to);
    *sums++ = sum_of_bytes(to, kBlockInputs);
  }
}

// Rounds to bf16, halves to even, and leaves f32.
void round_row(const float* x, size_t channels, size_t depth, float* to) {
  const F32 d;
  const hn::RebindToUnsigned<F32> du;
  for (size_t k = 0; k < depth; k += hn::Lanes(d)) {
    const VF v = k < channels ? hn::LoadU(d, x + k) : hn::Zero(d);
    hn::StoreU(hn::BitCast(d, hn::And(RoundedBits(d, v), hn::Set(du, 0xFFFF0000u))), d, to + k);
  }
}

void narrow_rows_target(const PackedMatrix& matrix, View<const float, 2> x, Range rows, const NarrowRows& to) {
  const Products products = choose_products();
  const size_t channels = matrix.channels, depth = matrix.depth();
  for (size_t r = rows.begin; r < rows.end; ++r) {
    const float* const from = x.data() + r * x.stride(0);
    std::byte* const values = to.values + r * to.stride;
    switch (matrix.type) {
      case PanelType::kBf16:
#if HWY_TARGET == HWY_AVX3
        if (products.bf16_pairs) {
          round_to_bf16_avx512(from, round_up(channels, 32), reinterpret_cast<uint16_t*>(values));
          break;
        }
#endif
        round_row(from, channels, depth, reinterpret_cast<float*>(values));
        break;
      case PanelType::kInt8Symmetric:
        to.scale[r] = quantise_row(from, channels, depth, products.int8_offset, values);
        break;
      case PanelType::kInt4: {
        const size_t groups = depth / kInt4Group;
        to.scale[r] = quantise_row(from, channels, depth, 0, values);
        group_terms(values, groups, to.group_term + r * groups);
        break;
      }
      case PanelType::kInt8Blocks:
      case PanelType::kInt4Blocks: {
        const size_t blocks = depth / kBlockInputs;
        quantise_blocks(from, channels, depth, values, to.scale + r * blocks, to.group_term + r * blocks);
        break;
      }
      default: break;
    }
  }
}

// Turns the sums of rows [row, row + rows) into numbers of y, at panel p.
struct Finish {
  const PackedMatrix& matrix;
  const NarrowRows& x;
  View<const float, 2> addend;
  View<float, 2> y;
  int32_t int8_offset;

  HWY_INLINE void store(VF v, size_t row, size_t column) const {
    const F32 d;
    if (addend.data() != nullptr) v = hn::Add(v, hn::LoadU(d, addend.data() + row * addend.stride(0) + column));
    hn::StoreU(v, d, y.data() + row * y.stride(0) + column);
  }
  void int8(const int32_t* sums, size_t row, size_t rows, size_t p) const {
    const F32 d;
    const I32 di;
    for (size_t n = 0; n < kPanelColumns; n += hn::Lanes(d)) {
      const size_t column = p * kPanelColumns + n;
      const auto term = hn::Mul(hn::Set(di, int8_offset), hn::LoadU(di, matrix.column_sum + column));
      const VF scale = hn::LoadU(d, matrix.scale + column), bias = hn::LoadU(d, matrix.bias + column);
      for (size_t r = 0; r < rows; ++r) {
        const VF exact = hn::ConvertTo(d, hn::Sub(hn::LoadU(di, sums + r * kPanelColumns + n), term));
        store(hn::MulAdd(hn::Mul(exact, hn::Set(d, x.scale[row + r])), scale, bias), row + r, column);
      }
    }
  }
  void f32(const float* sums, size_t row, size_t rows, size_t p) const {
    const F32 d;
    for (size_t n = 0; n < kPanelColumns; n += hn::Lanes(d)) {
      const size_t column = p * kPanelColumns + n;
      const VF bias = hn::LoadU(d, matrix.bias + column);
      for (size_t r = 0; r < rows; ++r) {
        const VF sum = hn::LoadU(d, sums + r * kPanelColumns + n);
        const bool scaled = matrix.type == PanelType::kInt4;
        const VF scale = hn::Set(d, scaled ? x.scale[row + r] : 1.0f);
        store(hn::MulAdd(sum, scale, bias), row + r, column);
      }
    }
  }
};

void narrow_gemm_target(const PackedMatrix& matrix, const NarrowRows& x, View<const float, 2> addend, View<float, 2> y,
                        Range panels) {
  const Products products = choose_products();
  const Finish finish{matrix, x, addend, y, products.int8_offset};
  const size_t groups = matrix.depth() / kInt4Group, blocks = matrix.depth() / kBlockInputs;
  // Beyond a tile the products take longer than the reading of a panel: sums kept between its pieces would cost more.
  const size_t step = x.rows > kNarrowTile ? even_step(x.rows, kNarrowRows) : x.rows;
  alignas(64) int32_t whole[kNarrowTile * kPanelColumns];
  alignas(64) float sums[kNarrowTile * kPanelColumns];
  const auto* panel = static_cast<const std::byte*>(matrix.panels) + panels.begin * matrix.panel_bytes();
  for (size_t p = panels.begin; p < panels.end; ++p, panel += matrix.panel_bytes()) {
    for (size_t row = 0; row < x.rows; row += step) {
      const size_t rows = std::min(step, x.rows - row);
      const NarrowBlock block{.rows = x.values + row * x.stride, .stride = x.stride, .depth = matrix.depth()};
      switch (matrix.type) {
        case PanelType::kInt8Symmetric:
          products.int8(block, reinterpret_cast<const int8_t*>(panel), rows, whole);
          finish.int8(whole, row, rows, p);
          break;
        case PanelType::kInt4:
          products.int4(block, x.group_term + row * groups, panel, rows, sums);
          finish.f32(sums, row, rows, p);
          break;
        case PanelType::kBf16:
          products.bf16(block, reinterpret_cast<const uint16_t*>(panel), rows, sums);
          finish.f32(sums, row, rows, p);
          break;
        case PanelType::kInt8Blocks:
        case PanelType::kInt4Blocks: {
          const BlockScales scales{
              .scale = x.scale + row * blocks, .sum = x.group_term + row * blocks, .stride = blocks};
          const bool wide = matrix.type == PanelType::kInt8Blocks;
          (wide ? products.int8_blocks : products.int4_blocks)(block, scales, panel, rows, sums);
          finish.f32(sums, row, rows, p);
          break;
        }
        default: break;
      }
    }
  }
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {
namespace {

// A row's bytes: in f32 where bf16 is not multiplied as it is.  A multiple of 64 and one line more, so that rows of a
// power of two do not meet in one set of the first-level cache.
size_t row_bytes(const PackedMatrix& matrix) {
  const size_t element = matrix.type != PanelType::kBf16 ? 1 : use_avx512_bf16() ? sizeof(uint16_t) : sizeof(float);
  return round_up(round_up(matrix.depth(), 32) * element, 64) + 64;
}
// Sums and scales of a row's activations.
size_t groups(const PackedMatrix& matrix) {
  if (is_blocks(matrix.type)) return matrix.depth() / kBlockInputs;
  return matrix.type == PanelType::kInt4 ? matrix.depth() / kInt4Group : 0;
}
size_t scales(const PackedMatrix& matrix) { return is_blocks(matrix.type) ? groups(matrix) : 1; }

}  // namespace

HWY_EXPORT(narrow_rows_target);
HWY_EXPORT(narrow_gemm_target);

size_t narrow_rows_bytes(const PackedMatrix& matrix, size_t rows) {
  return rows * row_bytes(matrix) + round_up(rows * scales(matrix) * sizeof(float), 64) +
         round_up(rows * groups(matrix) * sizeof(int32_t), 64);
}

NarrowRows plan_narrow_rows(const PackedMatrix& matrix, size_t rows, std::span<std::byte> scratch) {
  SYRINX_CHECK(scratch.size() >= narrow_rows_bytes(matrix, rows), "scratch of {} bytes, needs {}", scratch.size(),
               narrow_rows_bytes(matrix, rows));
  NarrowRows to;
  to.rows = rows;
  to.values = scratch.data();
  to.stride = row_bytes(matrix);
  std::byte* at = to.values + rows * to.stride;
  if (matrix.type != PanelType::kBf16) to.scale = reinterpret_cast<float*>(at);
  at += round_up(rows * scales(matrix) * sizeof(float), 64);
  if (groups(matrix) > 0) to.group_term = reinterpret_cast<int32_t*>(at);
  return to;
}

void narrow_rows(const PackedMatrix& matrix, View<const float, 2> x, Range rows, const NarrowRows& to) {
  SYRINX_CHECK(is_narrow(matrix.type) && rows.end <= to.rows && rows.end <= x.extent(0), "rows {} to {} of {}",
               rows.begin, rows.end, to.rows);
  HWY_DYNAMIC_DISPATCH(narrow_rows_target)(matrix, x, rows, to);
}

void narrow_gemm(const PackedMatrix& matrix, const NarrowRows& x, View<const float, 2> addend, View<float, 2> y,
                 Range panels) {
  SYRINX_CHECK(is_narrow(matrix.type) && matrix.taps == 1 && panels.end <= matrix.panel_count(), "panels {} to {}",
               panels.begin, panels.end);
  HWY_DYNAMIC_DISPATCH(narrow_gemm_target)(matrix, x, addend, y, panels);
}

}  // namespace syrinx::kernels
#endif
