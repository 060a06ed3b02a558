// Narrow inner products with the dot product of Armv8.2, signed by signed, and with BF16 of Armv8.6.
#if defined(__aarch64__)

#include <arm_neon.h>

#include <cstring>

#include "kernels/cpu/narrow_block.h"
#include "tensor/packed_matrix.h"

#define SYRINX_DOTPROD __attribute__((target("arch=armv8.2-a+dotprod")))
#define SYRINX_NEON_BF16 __attribute__((target("arch=armv8.2-a+bf16")))

namespace syrinx::kernels {
namespace {

SYRINX_DOTPROD inline int8x16_t broadcast4(const std::byte* a) {
  int32_t four;
  std::memcpy(&four, a, sizeof four);
  return vreinterpretq_s8_s32(vdupq_n_s32(four));
}

// kRows x 16 columns of a panel: with four rows 16 sums and 4 weights fit the 32 registers.
template <size_t kRows>
SYRINX_DOTPROD void int8_half(const NarrowBlock& x, const int8_t* panel, int32_t* c) {
  int32x4_t sum[kRows][4];
  for (size_t r = 0; r < kRows; ++r)
    for (size_t i = 0; i < 4; ++i) sum[r][i] = vdupq_n_s32(0);
  for (size_t k = 0; k < x.depth; k += 4, panel += 128) {
    int8x16_t w[4];
    for (size_t i = 0; i < 4; ++i) w[i] = vld1q_s8(panel + 16 * i);
    for (size_t r = 0; r < kRows; ++r) {
      const int8x16_t a = broadcast4(x.rows + r * x.stride + k);
      for (size_t i = 0; i < 4; ++i) sum[r][i] = vdotq_s32(sum[r][i], w[i], a);
    }
  }
  for (size_t r = 0; r < kRows; ++r)
    for (size_t i = 0; i < 4; ++i) vst1q_s32(c + r * 32 + 4 * i, sum[r][i]);
}

// One row of 16 columns of a panel, the first or the second.
SYRINX_DOTPROD void int4_half(const NarrowBlock& x, const int32_t* group_term, const std::byte* panel, size_t half,
                              float* c) {
  const uint8x16_t mask = vdupq_n_u8(0x0F);
  float32x4_t total[4];
  for (float32x4_t& t : total) t = vdupq_n_f32(0.0f);
  const std::byte* a = x.rows;
  for (size_t g = 0; g < x.depth / kInt4Group; ++g) {
    const auto* const scales = reinterpret_cast<const uint16_t*>(panel) + half * 16;
    const std::byte* weights = panel + 64 + half * 64;
    int32x4_t sum[4];
    for (int32x4_t& s : sum) s = vdupq_n_s32(group_term[g]);
    for (size_t k = 0; k < kInt4Group; k += 8, weights += 128, a += 8) {
      const int8x16_t first = broadcast4(a), second = broadcast4(a + 4);
      for (size_t i = 0; i < 4; ++i) {
        const uint8x16_t w = vld1q_u8(reinterpret_cast<const uint8_t*>(weights) + 16 * i);
        sum[i] = vdotq_s32(sum[i], vreinterpretq_s8_u8(vandq_u8(w, mask)), first);
        sum[i] = vdotq_s32(sum[i], vreinterpretq_s8_u8(vshrq_n_u8(w, 4)), second);
      }
    }
    for (size_t i = 0; i < 4; ++i) {
      const float32x4_t scale = vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(scales + 4 * i), 16));
      total[i] = vfmaq_f32(total[i], vcvtq_f32_s32(sum[i]), scale);
    }
    panel += 64 + kInt4Group / 2 * kPanelColumns;
  }
  for (size_t i = 0; i < 4; ++i) vst1q_f32(c + 4 * i, total[i]);
}

// The whole sums of one row of 16 columns.
SYRINX_DOTPROD void int4_sums_half(const NarrowBlock& x, const std::byte* weights, int32_t* c) {
  const uint8x16_t mask = vdupq_n_u8(0x0F);
  int32x4_t sum[4];
  for (int32x4_t& s : sum) s = vdupq_n_s32(0);
  for (size_t k = 0; k < x.depth; k += 8, weights += 128) {
    const int8x16_t first = broadcast4(x.rows + k), second = broadcast4(x.rows + k + 4);
    for (size_t i = 0; i < 4; ++i) {
      const uint8x16_t w = vld1q_u8(reinterpret_cast<const uint8_t*>(weights) + 16 * i);
      sum[i] = vdotq_s32(sum[i], vreinterpretq_s8_u8(vandq_u8(w, mask)), first);
      sum[i] = vdotq_s32(sum[i], vreinterpretq_s8_u8(vshrq_n_u8(w, 4)), second);
    }
  }
  for (size_t i = 0; i < 4; ++i) vst1q_s32(c + 4 * i, sum[i]);
}

// kRows x 16 columns of a panel: with six rows 24 sums, 4 weights and a pair of activations fit the 32 registers.
template <size_t kRows>
SYRINX_NEON_BF16 void bf16_half(const NarrowBlock& x, const uint16_t* panel, float* c) {
  float32x4_t sum[kRows][4];
  for (size_t r = 0; r < kRows; ++r)
    for (size_t i = 0; i < 4; ++i) sum[r][i] = vdupq_n_f32(0.0f);
  const std::byte* tap = x.rows;
  for (size_t t = 0; t < x.taps; ++t, tap += x.tap_stride) {
    for (size_t k = 0; k < x.depth; k += 2, panel += 64) {
      bfloat16x8_t w[4];
      for (size_t i = 0; i < 4; ++i) w[i] = vreinterpretq_bf16_u16(vld1q_u16(panel + 8 * i));
      for (size_t r = 0; r < kRows; ++r) {
        uint32_t two;
        std::memcpy(&two, tap + r * x.stride + 2 * k, sizeof two);
        const bfloat16x8_t a = vreinterpretq_bf16_u32(vdupq_n_u32(two));
        for (size_t i = 0; i < 4; ++i) sum[r][i] = vbfdotq_f32(sum[r][i], w[i], a);
      }
    }
  }
  for (size_t r = 0; r < kRows; ++r)
    for (size_t i = 0; i < 4; ++i) vst1q_f32(c + r * 32 + 4 * i, sum[r][i]);
}

}  // namespace

void bf16_rows_neon(const NarrowBlock& x, const uint16_t* panel, size_t rows, float* c) {
  constexpr decltype(&bf16_half<1>) kHalves[] = {bf16_half<1>, bf16_half<2>, bf16_half<3>,
                                                 bf16_half<4>, bf16_half<5>, bf16_half<6>};
  const size_t step = even_step(rows, 6);
  for (size_t r = 0; r < rows; r += step) {
    NarrowBlock part = x;
    part.rows += r * x.stride;
    const auto half = kHalves[(rows - r < step ? rows - r : step) - 1];
    half(part, panel, c + r * 32);
    half(part, panel + 32, c + r * 32 + 16);
  }
}

void int8_rows_dotprod(const NarrowBlock& x, const int8_t* panel, size_t rows, int32_t* c) {
  for (size_t r = 0; r < rows;) {
    const NarrowBlock part{.rows = x.rows + r * x.stride, .stride = x.stride, .depth = x.depth};
    for (size_t half = 0; half < 2; ++half) {
      const int8_t* const weights = panel + half * 64;
      int32_t* const to = c + r * 32 + half * 16;
      switch (rows - r) {
        case 1: int8_half<1>(part, weights, to); break;
        case 2: int8_half<2>(part, weights, to); break;
        case 3: int8_half<3>(part, weights, to); break;
        default: int8_half<4>(part, weights, to); break;
      }
    }
    r += rows - r < 4 ? rows - r : 4;
  }
}

void int4_rows_dotprod(const NarrowBlock& x, const int32_t* group_term, const std::byte* panel, size_t rows, float* c) {
  for (size_t r = 0; r < rows; ++r) {
    const NarrowBlock row{.rows = x.rows + r * x.stride, .stride = x.stride, .depth = x.depth};
    const int32_t* const terms = group_term + r * (x.depth / kInt4Group);
    for (size_t half = 0; half < 2; ++half) int4_half(row, terms, panel, half, c + r * 32 + half * 16);
  }
}

void int4_sums_dotprod(const NarrowBlock& x, const std::byte* weights, size_t rows, int32_t* c) {
  for (size_t r = 0; r < rows; ++r) {
    const NarrowBlock row{.rows = x.rows + r * x.stride, .stride = x.stride, .depth = x.depth};
    for (size_t half = 0; half < 2; ++half) int4_sums_half(row, weights + half * 64, c + r * 32 + half * 16);
  }
}

}  // namespace syrinx::kernels

#endif  // __aarch64__
