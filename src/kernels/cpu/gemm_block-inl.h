// Included once per Highway target: the f32 block, and the int8 block of targets without a dot instruction.
#if defined(SYRINX_KERNELS_CPU_GEMM_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYRINX_KERNELS_CPU_GEMM_BLOCK_INL_H_
#undef SYRINX_KERNELS_CPU_GEMM_BLOCK_INL_H_
#else
#define SYRINX_KERNELS_CPU_GEMM_BLOCK_INL_H_
#endif

#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/cpu/gemm_block.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;

// Rows of a block: with two vectors of columns the sums fill the register file and leave room for the operands.
#if HWY_TARGET == HWY_AVX3
inline constexpr size_t kBlockRows = 14, kSubRows = 14;
#elif HWY_TARGET == HWY_NEON
inline constexpr size_t kBlockRows = 12, kSubRows = 12;
#else
inline constexpr size_t kBlockRows = 12, kSubRows = 6;
#endif

// Weights are fetched 4 KiB before they are needed, from memory or the third-level cache.
inline constexpr size_t kPanelAhead = 1024;

template <size_t kRows>
HWY_NOINLINE void f32_sub_block(const float* HWY_RESTRICT a, const BlockGeometry& g, const float* HWY_RESTRICT panel,
                                float* HWY_RESTRICT c) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  using V = hn::Vec<F32>;
  V sum0[kRows], sum1[kRows];
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) sum0[r] = sum1[r] = hn::Zero(d);
  for (size_t t = 0; t < g.taps; ++t) {
    const float* HWY_RESTRICT tap = a + t * g.tap_stride;
    for (size_t k = 0; k < g.depth; ++k, panel += 32) {
      hwy::Prefetch(panel + kPanelAhead);
      hwy::Prefetch(panel + kPanelAhead + 16);
      const V w0 = hn::LoadU(d, panel);
      const V w1 = hn::LoadU(d, panel + lanes);
      SYRINX_UNROLL
      for (size_t r = 0; r < kRows; ++r) {
        const V x = hn::Set(d, tap[r * g.row_stride + k]);
        sum0[r] = hn::MulAdd(x, w0, sum0[r]);
        sum1[r] = hn::MulAdd(x, w1, sum1[r]);
      }
    }
  }
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    hn::StoreU(sum0[r], d, c + r * 32);
    hn::StoreU(sum1[r], d, c + r * 32 + lanes);
  }
}

template <size_t kRows>
HWY_INLINE void f32_columns(const float* a, const BlockGeometry& g, const float* panel, float* c) {
  const size_t step = 2 * hn::Lanes(F32());
  for (size_t n = 0; n < 32; n += step) f32_sub_block<kRows>(a, g, panel + n, c + n);
}

// Calls block<rows>() for rows in [1, kMax].
template <size_t kMax, class Block>
HWY_INLINE void with_rows(size_t rows, const Block& block) {
  if (rows == kMax) return block(std::integral_constant<size_t, kMax>());
  if constexpr (kMax > 1) with_rows<kMax - 1>(rows, block);
}

inline void f32_block(const float* a, const BlockGeometry& g, const float* panel, size_t rows, float* c) {
  for (size_t r = 0; r < rows; r += kSubRows) {
    const size_t left = rows - r < kSubRows ? rows - r : kSubRows;
    with_rows<kSubRows>(left, [&](auto n) { f32_columns<n>(a + r * g.row_stride, g, panel, c + r * 32); });
  }
}

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_AVX3
// maddubs adds two u8 x s8 products into 16 bits: at most 2 * 255 * 64 = 32640 with 7-bit weights, so it never
// saturates and the sums are exact (Kokoro, section 6.3).
#if HWY_TARGET == HWY_AVX3
using Int = __m512i;
HWY_INLINE Int int_zero() { return _mm512_setzero_si512(); }
HWY_INLINE Int int_load(const int8_t* p) { return _mm512_loadu_si512(p); }
HWY_INLINE void int_store(int32_t* p, Int v) { _mm512_storeu_si512(p, v); }
HWY_INLINE Int int_broadcast(int32_t v) { return _mm512_set1_epi32(v); }
HWY_INLINE Int dot_add(Int sum, Int x, Int w) {
  return _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_maddubs_epi16(x, w), _mm512_set1_epi16(1)));
}
#elif HWY_TARGET == HWY_AVX2
using Int = __m256i;
HWY_INLINE Int int_zero() { return _mm256_setzero_si256(); }
HWY_INLINE Int int_load(const int8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
HWY_INLINE void int_store(int32_t* p, Int v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
HWY_INLINE Int int_broadcast(int32_t v) { return _mm256_set1_epi32(v); }
HWY_INLINE Int dot_add(Int sum, Int x, Int w) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(x, w), _mm256_set1_epi16(1)));
}
#else
using Int = __m128i;
HWY_INLINE Int int_zero() { return _mm_setzero_si128(); }
HWY_INLINE Int int_load(const int8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
HWY_INLINE void int_store(int32_t* p, Int v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v); }
HWY_INLINE Int int_broadcast(int32_t v) { return _mm_set1_epi32(v); }
HWY_INLINE Int dot_add(Int sum, Int x, Int w) {
  return _mm_add_epi32(sum, _mm_madd_epi16(_mm_maddubs_epi16(x, w), _mm_set1_epi16(1)));
}
#endif
inline constexpr size_t kIntLanes = sizeof(Int) / 4;

template <size_t kRows>
HWY_NOINLINE void int8_sub_block(const uint8_t* HWY_RESTRICT a, const BlockGeometry& g,
                                 const int8_t* HWY_RESTRICT panel, int32_t* HWY_RESTRICT c) {
  Int sum0[kRows], sum1[kRows];
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) sum0[r] = sum1[r] = int_zero();
  for (size_t t = 0; t < g.taps; ++t) {
    const uint8_t* HWY_RESTRICT tap = a + t * g.tap_stride;
    for (size_t k = 0; k < g.depth; k += 4, panel += 128) {
      SYRINX_UNROLL
      for (size_t r = 0; r < kRows; ++r) {
        int32_t four;
        std::memcpy(&four, tap + r * g.row_stride + k, sizeof four);
        const Int x = int_broadcast(four);
        sum0[r] = dot_add(sum0[r], x, int_load(panel));
        sum1[r] = dot_add(sum1[r], x, int_load(panel + 4 * kIntLanes));
      }
    }
  }
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    int_store(c + r * 32, sum0[r]);
    int_store(c + r * 32 + kIntLanes, sum1[r]);
  }
}

inline void int8_block(const uint8_t* a, const BlockGeometry& g, const int8_t* panel, size_t rows, int32_t* c) {
  constexpr size_t kRows = 6;
  for (size_t r = 0; r < rows; r += kRows) {
    const size_t left = rows - r < kRows ? rows - r : kRows;
    with_rows<kRows>(left, [&](auto m) {
      for (size_t n = 0; n < 32; n += 2 * kIntLanes)
        int8_sub_block<m>(a + r * g.row_stride, g, panel + 4 * n, c + r * 32 + n);
    });
  }
}
#else
// No byte products worth their shuffles here: plain code, which the compiler vectorises as far as it can.
inline void int8_block(const uint8_t* a, const BlockGeometry& g, const int8_t* panel, size_t rows, int32_t* c) {
  for (size_t r = 0; r < rows; ++r) {
    const int8_t* w = panel;
    int32_t* HWY_RESTRICT sum = c + r * 32;
    for (size_t n = 0; n < 32; ++n) sum[n] = 0;
    for (size_t t = 0; t < g.taps; ++t) {
      const uint8_t* x = a + r * g.row_stride + t * g.tap_stride;
      for (size_t k = 0; k < g.depth; k += 4, w += 128) {
        for (size_t n = 0; n < 32; ++n) {
          sum[n] += x[k] * w[4 * n] + x[k + 1] * w[4 * n + 1] + x[k + 2] * w[4 * n + 2] + x[k + 3] * w[4 * n + 3];
        }
      }
    }
  }
}
#endif

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
