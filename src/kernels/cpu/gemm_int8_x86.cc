// u8 x s8 inner products with AVX-512 VNNI, behind our own processor test (dispatch.h): Highway 1.0.3 has no dot
// operation, and its AVX3_DL target may emit the VEX form, an illegal instruction on processors without AVX-VNNI.
#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#include "kernels/cpu/gemm_block.h"

#define SYRINX_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))

namespace syrinx::kernels {
namespace {

SYRINX_VNNI inline __m512i broadcast4(const uint8_t* a) {
  int32_t four;
  std::memcpy(&four, a, sizeof four);
  return _mm512_set1_epi32(four);
}

// kRows x 32 accumulators: at 14 rows they fill 28 of the 32 registers and each weight byte loaded serves 14 rows, so
// that a panel can stream from the second-level cache at the rate of the two dot-product ports.
template <size_t kRows>
SYRINX_VNNI void block(const uint8_t* a, const BlockGeometry& g, const int8_t* panel, int32_t* c) {
  __m512i sum0[kRows], sum1[kRows];
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) sum0[r] = sum1[r] = _mm512_setzero_si512();
  for (size_t t = 0; t < g.taps; ++t) {
    const uint8_t* const tap = a + t * g.tap_stride;
    for (size_t k = 0; k < g.depth; k += 4, panel += 128) {
      const __m512i w0 = _mm512_loadu_si512(panel);
      const __m512i w1 = _mm512_loadu_si512(panel + 64);
      SYRINX_UNROLL
      for (size_t r = 0; r < kRows; ++r) {
        const __m512i x = broadcast4(tap + r * g.row_stride + k);
        sum0[r] = _mm512_dpbusd_epi32(sum0[r], x, w0);
        sum1[r] = _mm512_dpbusd_epi32(sum1[r], x, w1);
      }
    }
  }
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    _mm512_storeu_si512(c + r * 32, sum0[r]);
    _mm512_storeu_si512(c + r * 32 + 16, sum1[r]);
  }
}

}  // namespace

void int8_block_vnni(const uint8_t* a, const BlockGeometry& g, const int8_t* panel, size_t rows, int32_t* c) {
  switch (rows) {
    case 1: return block<1>(a, g, panel, c);
    case 2: return block<2>(a, g, panel, c);
    case 3: return block<3>(a, g, panel, c);
    case 4: return block<4>(a, g, panel, c);
    case 5: return block<5>(a, g, panel, c);
    case 6: return block<6>(a, g, panel, c);
    case 7: return block<7>(a, g, panel, c);
    case 8: return block<8>(a, g, panel, c);
    case 9: return block<9>(a, g, panel, c);
    case 10: return block<10>(a, g, panel, c);
    case 11: return block<11>(a, g, panel, c);
    case 12: return block<12>(a, g, panel, c);
    case 13: return block<13>(a, g, panel, c);
    default: return block<14>(a, g, panel, c);
  }
}

SYRINX_VNNI void int8_gemv_vnni(const uint8_t* a, size_t depth, const int8_t* panels, size_t panel_count, int32_t* y) {
  constexpr size_t kAtOnce = 4;  // 8 sums in flight hide the latency of the dot product
  const size_t panel_bytes = depth * 32;
  size_t p = 0;
  for (; p + kAtOnce <= panel_count; p += kAtOnce, panels += kAtOnce * panel_bytes, y += kAtOnce * 32) {
    __m512i sum[2 * kAtOnce];
    SYRINX_UNROLL
    for (size_t i = 0; i < 2 * kAtOnce; ++i) sum[i] = _mm512_setzero_si512();
    for (size_t k = 0; k < depth; k += 4) {
      const __m512i x = broadcast4(a + k);
      SYRINX_UNROLL
      for (size_t i = 0; i < kAtOnce; ++i) {
        const int8_t* const w = panels + i * panel_bytes + k * 32;
        sum[2 * i] = _mm512_dpbusd_epi32(sum[2 * i], x, _mm512_loadu_si512(w));
        sum[2 * i + 1] = _mm512_dpbusd_epi32(sum[2 * i + 1], x, _mm512_loadu_si512(w + 64));
      }
    }
    SYRINX_UNROLL
    for (size_t i = 0; i < 2 * kAtOnce; ++i) _mm512_storeu_si512(y + i * 16, sum[i]);
  }
  const BlockGeometry rest{.row_stride = depth, .taps = 1, .tap_stride = 0, .depth = depth};
  for (; p < panel_count; ++p, panels += panel_bytes, y += 32) block<1>(a, rest, panels, y);
}

}  // namespace syrinx::kernels

#endif
