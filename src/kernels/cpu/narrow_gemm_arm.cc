// Narrow inner products with the dot product of Armv8.2, signed by signed.
#if defined(__aarch64__)

#include <arm_neon.h>

#include <cstring>

#include "kernels/cpu/narrow_block.h"
#include "tensor/packed_matrix.h"

#define SYRINX_DOTPROD __attribute__((target("arch=armv8.2-a+dotprod")))

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

}  // namespace

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

}  // namespace syrinx::kernels

#endif  // __aarch64__
