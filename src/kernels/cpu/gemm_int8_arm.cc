// u8 x s8 inner products with the dot-product extension of Armv8.2.  The instruction multiplies signed by signed, so
// activations are shifted by 128 (eor 0x80) and 128 times the sum of the weights is added back.
#if defined(__aarch64__)

#include <arm_neon.h>

#include <cstring>

#include "kernels/cpu/gemm_block.h"

#define SYRINX_DOTPROD __attribute__((target("arch=armv8.2-a+dotprod")))

namespace syrinx::kernels {
namespace {

// kRows x 16 columns of a panel: at 4 rows 16 sums, 4 weight sums and 4 weights fit the 32 registers.
template <size_t kRows>
SYRINX_DOTPROD void half_block(const uint8_t* a, const BlockGeometry& g, const int8_t* panel, int32_t* c) {
  int32x4_t sum[kRows][4], weights[4];
  const int8x16_t ones = vdupq_n_s8(1);
  for (size_t i = 0; i < 4; ++i) {
    weights[i] = vdupq_n_s32(0);
    for (size_t r = 0; r < kRows; ++r) sum[r][i] = vdupq_n_s32(0);
  }
  for (size_t t = 0; t < g.taps; ++t) {
    const uint8_t* const tap = a + t * g.tap_stride;
    for (size_t k = 0; k < g.depth; k += 4, panel += 128) {
      int8x16_t w[4];
      for (size_t i = 0; i < 4; ++i) {
        w[i] = vld1q_s8(panel + 16 * i);
        weights[i] = vdotq_s32(weights[i], w[i], ones);
      }
      for (size_t r = 0; r < kRows; ++r) {
        uint32_t four;
        std::memcpy(&four, tap + r * g.row_stride + k, sizeof four);
        const int8x16_t x = vreinterpretq_s8_u32(vdupq_n_u32(four ^ 0x80808080u));
        for (size_t i = 0; i < 4; ++i) sum[r][i] = vdotq_s32(sum[r][i], w[i], x);
      }
    }
  }
  for (size_t r = 0; r < kRows; ++r)
    for (size_t i = 0; i < 4; ++i) vst1q_s32(c + r * 32 + 4 * i, vmlaq_n_s32(sum[r][i], weights[i], 128));
}

template <size_t kRows>
SYRINX_DOTPROD void block(const uint8_t* a, const BlockGeometry& g, const int8_t* panel, int32_t* c) {
  half_block<kRows>(a, g, panel, c);
  half_block<kRows>(a, g, panel + 64, c + 16);
}

}  // namespace

void int8_block_dotprod(const uint8_t* a, const BlockGeometry& g, const int8_t* panel, size_t rows, int32_t* c) {
  size_t r = 0;
  for (; r + 4 <= rows; r += 4) block<4>(a + r * g.row_stride, g, panel, c + r * 32);
  switch (rows - r) {
    case 3: return block<3>(a + r * g.row_stride, g, panel, c + r * 32);
    case 2: return block<2>(a + r * g.row_stride, g, panel, c + r * 32);
    case 1: return block<1>(a + r * g.row_stride, g, panel, c + r * 32);
    default: return;
  }
}

}  // namespace syrinx::kernels

#endif
