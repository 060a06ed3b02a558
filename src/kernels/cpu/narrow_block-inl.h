// Included once per Highway target: the inner products of narrow_gemm.h without a dot instruction.  Interface and
// layout as in narrow_block.h; activations of int8 and int4 are signed bytes, those of bf16 rounded f32.
#if defined(SYRINX_KERNELS_CPU_NARROW_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYRINX_KERNELS_CPU_NARROW_BLOCK_INL_H_
#undef SYRINX_KERNELS_CPU_NARROW_BLOCK_INL_H_
#else
#define SYRINX_KERNELS_CPU_NARROW_BLOCK_INL_H_
#endif

#include <hwy/cache_control.h>

#include <cstring>

#include "hwy/highway.h"
#include "kernels/cpu/gemm_block-inl.h"
#include "kernels/cpu/narrow_block.h"
#include "tensor/packed_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using I32 = hn::RebindToSigned<F32>;
using U8 = hn::Rebind<uint8_t, F32>;
using I8 = hn::Rebind<int8_t, F32>;
using VF = hn::Vec<F32>;

template <class T>
HWY_INLINE void prefetch128(const T* at) {
  const auto* const ahead = reinterpret_cast<const std::byte*>(at) + kPrefetchBytes;
  hwy::Prefetch(ahead);
  hwy::Prefetch(ahead + 64);
}

inline NarrowBlock rows_from(const NarrowBlock& x, size_t row) {
  return {.rows = x.rows + row * x.stride, .stride = x.stride, .depth = x.depth};
}

// bf16 is the upper half of f32: of each pair, one shift and one mask make two vectors of weights.
template <size_t kRows, size_t kVectors>
HWY_NOINLINE void bf16_sub_block(const NarrowBlock& x, const uint16_t* HWY_RESTRICT panel, float* HWY_RESTRICT c) {
  const F32 d;
  const hn::RebindToUnsigned<F32> du;
  const size_t lanes = hn::Lanes(d);
  VF sum[kRows][kVectors];
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    SYRINX_UNROLL
    for (size_t v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
  }
  for (size_t k = 0; k < x.depth; k += 2, panel += 64) {
    prefetch128(panel);
    SYRINX_UNROLL
    for (size_t v = 0; v < kVectors; ++v) {
      const auto pairs = hn::LoadU(du, reinterpret_cast<const uint32_t*>(panel) + v * lanes);
      const VF even = hn::BitCast(d, hn::ShiftLeft<16>(pairs));
      const VF odd = hn::BitCast(d, hn::And(pairs, hn::Set(du, 0xFFFF0000u)));
      SYRINX_UNROLL
      for (size_t r = 0; r < kRows; ++r) {
        const auto* const a = reinterpret_cast<const float*>(x.rows + r * x.stride) + k;
        sum[r][v] = hn::MulAdd(hn::Set(d, a[0]), even, sum[r][v]);
        sum[r][v] = hn::MulAdd(hn::Set(d, a[1]), odd, sum[r][v]);
      }
    }
  }
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    SYRINX_UNROLL
    for (size_t v = 0; v < kVectors; ++v) hn::StoreU(sum[r][v], d, c + r * kPanelColumns + v * lanes);
  }
}

// The same for many rows: a piece of the panel is widened to f32 once for all of them, in the first-level cache.
inline constexpr size_t kWideDepth = 64, kWideRows = 6, kManyRows = 5;

template <size_t kRows>
HWY_NOINLINE void f32_piece(const NarrowBlock& x, const float* HWY_RESTRICT wide, float* HWY_RESTRICT c) {
  constexpr size_t kVectors = kPanelColumns / hn::MaxLanes(F32()) < 2 ? kPanelColumns / hn::MaxLanes(F32()) : 2;
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  for (size_t n = 0; n < kPanelColumns; n += kVectors * lanes) {
    VF sum[kRows][kVectors];
    SYRINX_UNROLL
    for (size_t r = 0; r < kRows; ++r) {
      SYRINX_UNROLL
      for (size_t v = 0; v < kVectors; ++v) sum[r][v] = hn::LoadU(d, c + r * kPanelColumns + n + v * lanes);
    }
    for (size_t k = 0; k < x.depth; ++k) {
      const float* const w = wide + k * kPanelColumns + n;
      SYRINX_UNROLL
      for (size_t r = 0; r < kRows; ++r) {
        const VF a = hn::Set(d, reinterpret_cast<const float*>(x.rows + r * x.stride)[k]);
        SYRINX_UNROLL
        for (size_t v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(a, hn::LoadU(d, w + v * lanes), sum[r][v]);
      }
    }
    SYRINX_UNROLL
    for (size_t r = 0; r < kRows; ++r) {
      SYRINX_UNROLL
      for (size_t v = 0; v < kVectors; ++v) hn::StoreU(sum[r][v], d, c + r * kPanelColumns + n + v * lanes);
    }
  }
}

// [depth][32] of f32 out of a piece; fetches what comes a few pieces later.
inline void widen_piece(const uint16_t* HWY_RESTRICT panel, size_t depth, float* HWY_RESTRICT wide) {
  const F32 d;
  const hn::RebindToUnsigned<F32> du;
  for (size_t k = 0; k < depth; k += 2, panel += 64, wide += 2 * kPanelColumns) {
    prefetch128(panel);
    for (size_t n = 0; n < kPanelColumns; n += hn::Lanes(d)) {
      const auto pairs = hn::LoadU(du, reinterpret_cast<const uint32_t*>(panel) + n);
      hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(pairs)), d, wide + n);
      hn::StoreU(hn::BitCast(d, hn::And(pairs, hn::Set(du, 0xFFFF0000u))), d, wide + kPanelColumns + n);
    }
  }
}

inline void bf16_many_rows(const NarrowBlock& x, const uint16_t* panel, size_t rows, float* c) {
  alignas(64) float wide[kWideDepth * kPanelColumns];
  const size_t step = even_step(rows, kWideRows);
  std::memset(c, 0, rows * kPanelColumns * sizeof(float));
  for (size_t k = 0; k < x.depth; k += kWideDepth, panel += kWideDepth * kPanelColumns) {
    const size_t depth = x.depth - k < kWideDepth ? x.depth - k : kWideDepth;
    widen_piece(panel, depth, wide);
    for (size_t r = 0; r < rows; r += step) {
      const NarrowBlock part{.rows = x.rows + r * x.stride + k * sizeof(float), .stride = x.stride, .depth = depth};
      with_rows<kWideRows>(rows - r < step ? rows - r : step,
                           [&](auto m) { f32_piece<m>(part, wide, c + r * kPanelColumns); });
    }
  }
}

inline void bf16_rows(const NarrowBlock& x, const uint16_t* panel, size_t rows, float* c) {
  constexpr size_t kAll = kPanelColumns / hn::MaxLanes(F32()), kTwo = kAll < 2 ? kAll : 2, kRows = 4;
  if (rows == 1) return bf16_sub_block<1, kAll>(x, panel, c);  // a line of weights is read once
  if (rows >= kManyRows) return bf16_many_rows(x, panel, rows, c);
  for (size_t r = 0; r < rows; r += kRows) {
    with_rows<kRows>(rows - r < kRows ? rows - r : kRows, [&](auto m) {
      for (size_t n = 0; n < kPanelColumns; n += kTwo * hn::Lanes(F32()))
        bf16_sub_block<m, kTwo>(rows_from(x, r), panel + 2 * n, c + r * kPanelColumns + n);
    });
  }
}

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_AVX3
// maddubs wants one unsigned operand: |x|, with x's sign moved to the weights.  Both are 127 at most, so that two
// products stay below 2^15.  In int4 the weights themselves are unsigned and small.
#if HWY_TARGET == HWY_AVX3
HWY_INLINE Int int_abs(Int x) { return _mm512_abs_epi8(x); }
HWY_INLINE Int with_sign_of(Int w, Int x) {
  return _mm512_mask_sub_epi8(w, _mm512_movepi8_mask(x), _mm512_setzero_si512(), w);
}
HWY_INLINE Int low_half(Int w) { return _mm512_and_si512(w, _mm512_set1_epi8(0x0F)); }
HWY_INLINE Int high_half(Int w) { return low_half(_mm512_srli_epi16(w, 4)); }
HWY_INLINE Int dot2_add(Int sum, Int w0, Int x0, Int w1, Int x1) {
  const Int pairs = _mm512_add_epi16(_mm512_maddubs_epi16(w0, x0), _mm512_maddubs_epi16(w1, x1));
  return _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}
#elif HWY_TARGET == HWY_AVX2
HWY_INLINE Int int_abs(Int x) { return _mm256_abs_epi8(x); }
HWY_INLINE Int with_sign_of(Int w, Int x) { return _mm256_sign_epi8(w, x); }
HWY_INLINE Int low_half(Int w) { return _mm256_and_si256(w, _mm256_set1_epi8(0x0F)); }
HWY_INLINE Int high_half(Int w) { return low_half(_mm256_srli_epi16(w, 4)); }
HWY_INLINE Int dot2_add(Int sum, Int w0, Int x0, Int w1, Int x1) {
  const Int pairs = _mm256_add_epi16(_mm256_maddubs_epi16(w0, x0), _mm256_maddubs_epi16(w1, x1));
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
#else
HWY_INLINE Int int_abs(Int x) { return _mm_abs_epi8(x); }
HWY_INLINE Int with_sign_of(Int w, Int x) { return _mm_sign_epi8(w, x); }
HWY_INLINE Int low_half(Int w) { return _mm_and_si128(w, _mm_set1_epi8(0x0F)); }
HWY_INLINE Int high_half(Int w) { return low_half(_mm_srli_epi16(w, 4)); }
HWY_INLINE Int dot2_add(Int sum, Int w0, Int x0, Int w1, Int x1) {
  const Int pairs = _mm_add_epi16(_mm_maddubs_epi16(w0, x0), _mm_maddubs_epi16(w1, x1));
  return _mm_add_epi32(sum, _mm_madd_epi16(pairs, _mm_set1_epi16(1)));
}
#endif

HWY_INLINE Int int_broadcast4(const std::byte* a) {
  int32_t four;
  std::memcpy(&four, a, sizeof four);
  return int_broadcast(four);
}

template <size_t kRows, size_t kVectors>
HWY_NOINLINE void int8_signed_block(const NarrowBlock& x, const int8_t* HWY_RESTRICT panel, int32_t* HWY_RESTRICT c) {
  Int sum[kRows][kVectors];
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    SYRINX_UNROLL
    for (size_t v = 0; v < kVectors; ++v) sum[r][v] = int_zero();
  }
  for (size_t k = 0; k < x.depth; k += 4, panel += 128) {
    prefetch128(panel);
    SYRINX_UNROLL
    for (size_t r = 0; r < kRows; ++r) {
      const Int a = int_broadcast4(x.rows + r * x.stride + k), size = int_abs(a);
      SYRINX_UNROLL
      for (size_t v = 0; v < kVectors; ++v)
        sum[r][v] = dot_add(sum[r][v], size, with_sign_of(int_load(panel + 4 * kIntLanes * v), a));
    }
  }
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    SYRINX_UNROLL
    for (size_t v = 0; v < kVectors; ++v) int_store(c + r * kPanelColumns + v * kIntLanes, sum[r][v]);
  }
}

// The sums of one group, from the start values of its rows, `groups` apart.
template <size_t kRows, size_t kVectors>
HWY_INLINE void int4_group_block(const NarrowBlock& x, const int32_t* term, size_t groups, const std::byte* weights,
                                 int32_t* HWY_RESTRICT c) {
  Int sum[kRows][kVectors];
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    SYRINX_UNROLL
    for (size_t v = 0; v < kVectors; ++v) sum[r][v] = int_broadcast(term[r * groups]);
  }
  for (size_t k = 0; k < x.depth; k += 8, weights += 128) {
    prefetch128(weights);
    SYRINX_UNROLL
    for (size_t v = 0; v < kVectors; ++v) {
      const Int w = int_load(reinterpret_cast<const int8_t*>(weights) + 4 * kIntLanes * v);
      const Int low = low_half(w), high = high_half(w);
      SYRINX_UNROLL
      for (size_t r = 0; r < kRows; ++r) {
        const std::byte* const a = x.rows + r * x.stride + k;
        sum[r][v] = dot2_add(sum[r][v], low, int_broadcast4(a), high, int_broadcast4(a + 4));
      }
    }
  }
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    SYRINX_UNROLL
    for (size_t v = 0; v < kVectors; ++v) int_store(c + r * kPanelColumns + v * kIntLanes, sum[r][v]);
  }
}

inline constexpr size_t kAllVectors = kPanelColumns / kIntLanes, kSignedRows = 4;

// Many rows: of a piece, weights are widened to 16 bits once for all rows, and activations once for all columns.  A
// lane holds inputs 0 and 2 of four, and 32 columns (or a piece) later inputs 1 and 3.
#if HWY_TARGET == HWY_AVX3
HWY_INLINE Int even_bytes(Int v) { return _mm512_srai_epi16(_mm512_slli_epi16(v, 8), 8); }
HWY_INLINE Int odd_bytes(Int v) { return _mm512_srai_epi16(v, 8); }
HWY_INLINE Int wide_add(Int sum, Int x, Int w) { return _mm512_add_epi32(sum, _mm512_madd_epi16(x, w)); }
#elif HWY_TARGET == HWY_AVX2
HWY_INLINE Int even_bytes(Int v) { return _mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8); }
HWY_INLINE Int odd_bytes(Int v) { return _mm256_srai_epi16(v, 8); }
HWY_INLINE Int wide_add(Int sum, Int x, Int w) { return _mm256_add_epi32(sum, _mm256_madd_epi16(x, w)); }
#else
HWY_INLINE Int even_bytes(Int v) { return _mm_srai_epi16(_mm_slli_epi16(v, 8), 8); }
HWY_INLINE Int odd_bytes(Int v) { return _mm_srai_epi16(v, 8); }
HWY_INLINE Int wide_add(Int sum, Int x, Int w) { return _mm_add_epi32(sum, _mm_madd_epi16(x, w)); }
#endif
inline constexpr size_t kWideSteps = kWideDepth / 4;  // lanes of a row, even or odd

template <size_t kRows>
HWY_NOINLINE void int8_wide_block(const int32_t* HWY_RESTRICT x, const int32_t* HWY_RESTRICT wide, size_t steps,
                                  int32_t* HWY_RESTRICT c) {
  for (size_t n = 0; n < kPanelColumns; n += 2 * kIntLanes) {
    Int sum0[kRows], sum1[kRows];
    SYRINX_UNROLL
    for (size_t r = 0; r < kRows; ++r) {
      sum0[r] = int_load(reinterpret_cast<const int8_t*>(c + r * kPanelColumns + n));
      sum1[r] = int_load(reinterpret_cast<const int8_t*>(c + r * kPanelColumns + n + kIntLanes));
    }
    for (size_t half = 0; half < 2; ++half) {
      const int32_t* w = wide + half * kPanelColumns + n;
      const int32_t* const a = x + half * kWideSteps;
      for (size_t k = 0; k < steps; ++k, w += 2 * kPanelColumns) {
        const Int w0 = int_load(reinterpret_cast<const int8_t*>(w));
        const Int w1 = int_load(reinterpret_cast<const int8_t*>(w + kIntLanes));
        SYRINX_UNROLL
        for (size_t r = 0; r < kRows; ++r) {
          const Int v = int_broadcast(a[r * 2 * kWideSteps + k]);
          sum0[r] = wide_add(sum0[r], v, w0);
          sum1[r] = wide_add(sum1[r], v, w1);
        }
      }
    }
    SYRINX_UNROLL
    for (size_t r = 0; r < kRows; ++r) {
      int_store(c + r * kPanelColumns + n, sum0[r]);
      int_store(c + r * kPanelColumns + n + kIntLanes, sum1[r]);
    }
  }
}

inline void int8_many_rows(const NarrowBlock& x, const int8_t* panel, size_t rows, int32_t* c) {
  alignas(64) int32_t wide[2 * kWideSteps * kPanelColumns], activations[kNarrowTile * 2 * kWideSteps];
  const size_t step = even_step(rows, kWideRows);
  std::memset(c, 0, rows * kPanelColumns * sizeof(int32_t));
  for (size_t first = 0; first < x.depth; first += kWideDepth) {
    const size_t steps = (x.depth - first < kWideDepth ? x.depth - first : kWideDepth) / 4;
    for (size_t k = 0; k < steps; ++k, panel += 128) {
      prefetch128(panel);
      for (size_t n = 0; n < kPanelColumns; n += kIntLanes) {
        const Int w = int_load(panel + 4 * n);
        int_store(wide + 2 * k * kPanelColumns + n, even_bytes(w));
        int_store(wide + (2 * k + 1) * kPanelColumns + n, odd_bytes(w));
      }
    }
    for (size_t r = 0; r < rows; ++r) {
      const auto* const bytes = reinterpret_cast<const int8_t*>(x.rows + r * x.stride + first);
      int32_t* const to = activations + r * 2 * kWideSteps;
      for (size_t k = 0; k < steps; k += kIntLanes) {  // the last vector may read what is behind the row's depth
        const Int a = int_load(bytes + 4 * k);
        int_store(to + k, even_bytes(a));
        int_store(to + kWideSteps + k, odd_bytes(a));
      }
    }
    for (size_t r = 0; r < rows; r += step) {
      with_rows<kWideRows>(rows - r < step ? rows - r : step, [&](auto m) {
        int8_wide_block<m>(activations + r * 2 * kWideSteps, wide, steps, c + r * kPanelColumns);
      });
    }
  }
}

inline void int8_rows(const NarrowBlock& x, const int8_t* panel, size_t rows, int32_t* c) {
  if (rows == 1) return int8_signed_block<1, kAllVectors>(x, panel, c);
  if (rows >= kManyRows) return int8_many_rows(x, panel, rows, c);
  for (size_t r = 0; r < rows; r += kSignedRows) {
    with_rows<kSignedRows>(rows - r < kSignedRows ? rows - r : kSignedRows, [&](auto m) {
      for (size_t n = 0; n < kPanelColumns; n += 2 * kIntLanes)
        int8_signed_block<m, 2>(rows_from(x, r), panel + 4 * n, c + r * kPanelColumns + n);
    });
  }
}

inline void int4_group(const NarrowBlock& x, const int32_t* term, size_t groups, const std::byte* weights, size_t rows,
                       int32_t* c) {
  if (rows == 1) return int4_group_block<1, kAllVectors>(x, term, groups, weights, c);
  for (size_t r = 0; r < rows; r += kSignedRows) {
    with_rows<kSignedRows>(rows - r < kSignedRows ? rows - r : kSignedRows, [&](auto m) {
      for (size_t n = 0; n < kPanelColumns; n += 2 * kIntLanes)
        int4_group_block<m, 2>(rows_from(x, r), term + r * groups, groups, weights + 4 * n, c + r * kPanelColumns + n);
    });
  }
}

#else
// No byte products worth their shuffles here: plain code, which the compiler vectorises as far as it can.
inline void int8_rows(const NarrowBlock& x, const int8_t* panel, size_t rows, int32_t* c) {
  for (size_t r = 0; r < rows; ++r) {
    const auto* const a = reinterpret_cast<const int8_t*>(x.rows + r * x.stride);
    const int8_t* w = panel;
    int32_t* HWY_RESTRICT sum = c + r * kPanelColumns;
    for (size_t n = 0; n < kPanelColumns; ++n) sum[n] = 0;
    for (size_t k = 0; k < x.depth; k += 4, w += 128) {
      for (size_t n = 0; n < kPanelColumns; ++n)
        sum[n] += a[k] * w[4 * n] + a[k + 1] * w[4 * n + 1] + a[k + 2] * w[4 * n + 2] + a[k + 3] * w[4 * n + 3];
    }
  }
}

inline void int4_group(const NarrowBlock& x, const int32_t* term, size_t groups, const std::byte* weights, size_t rows,
                       int32_t* c) {
  for (size_t r = 0; r < rows; ++r) {
    const auto* const a = reinterpret_cast<const int8_t*>(x.rows + r * x.stride);
    const auto* w = reinterpret_cast<const uint8_t*>(weights);
    int32_t* HWY_RESTRICT sum = c + r * kPanelColumns;
    for (size_t n = 0; n < kPanelColumns; ++n) sum[n] = term[r * groups];
    for (size_t k = 0; k < x.depth; k += 8, w += 128) {
      for (size_t n = 0; n < kPanelColumns; ++n)
        for (size_t i = 0; i < 4; ++i) sum[n] += a[k + i] * (w[4 * n + i] & 15) + a[k + 4 + i] * (w[4 * n + i] >> 4);
    }
  }
}
#endif

inline void int4_rows(const NarrowBlock& x, const int32_t* group_term, const std::byte* panel, size_t rows, float* c) {
  const F32 d;
  const I32 di;
  const hn::RebindToUnsigned<F32> du;
  const hn::Rebind<uint16_t, F32> du16;
  const size_t groups = x.depth / kInt4Group;
  alignas(64) int32_t sums[kNarrowTile * kPanelColumns];
  std::memset(c, 0, rows * kPanelColumns * sizeof(float));
  for (size_t g = 0; g < groups; ++g) {
    const auto* const scales = reinterpret_cast<const uint16_t*>(panel);
    const NarrowBlock part{.rows = x.rows + g * kInt4Group, .stride = x.stride, .depth = kInt4Group};
    int4_group(part, group_term + g, groups, panel + 2 * kPanelColumns, rows, sums);
    for (size_t n = 0; n < kPanelColumns; n += hn::Lanes(d)) {
      const VF scale = hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(du16, scales + n))));
      for (size_t r = 0; r < rows; ++r) {
        float* const total = c + r * kPanelColumns + n;
        const VF sum = hn::ConvertTo(d, hn::LoadU(di, sums + r * kPanelColumns + n));
        hn::StoreU(hn::MulAdd(sum, scale, hn::LoadU(d, total)), d, total);
      }
    }
    panel += 2 * kPanelColumns + kInt4Group / 2 * kPanelColumns;
  }
}

// The nibbles of a block as they are.
inline void int4_sums(const NarrowBlock& x, const std::byte* weights, size_t rows, int32_t* c) {
  const int32_t zero = 0;
  int4_group(x, &zero, 0, weights, rows, c);
}

// Blocks: whole sums by `sums`(part of x, weights, rows, to), then scaled and added up.
template <bool kOffsets, class Sums>
void block_rows(const NarrowBlock& x, const BlockScales& scales, const std::byte* panel, size_t rows, float* c,
                const Sums& sums) {
  const F32 d;
  const I32 di;
  const hn::Rebind<hwy::float16_t, F32> d16;
  constexpr size_t kHead = (kOffsets ? 4 : 2) * kPanelColumns;
  constexpr size_t kWeights = kBlockInputs * kPanelColumns / (kOffsets ? 2 : 1);
  alignas(64) int32_t whole[kNarrowTile * kPanelColumns];
  std::memset(c, 0, rows * kPanelColumns * sizeof(float));
  for (size_t b = 0; b < x.depth / kBlockInputs; ++b, panel += kHead + kWeights) {
    const NarrowBlock part{.rows = x.rows + b * kBlockInputs, .stride = x.stride, .depth = kBlockInputs};
    sums(part, panel + kHead, rows, whole);
    const auto* const head = reinterpret_cast<const hwy::float16_t*>(panel);
    for (size_t n = 0; n < kPanelColumns; n += hn::Lanes(d)) {
      const VF scale = hn::PromoteTo(d, hn::LoadU(d16, head + n));
      const VF offset = kOffsets ? hn::PromoteTo(d, hn::LoadU(d16, head + kPanelColumns + n)) : hn::Zero(d);
      for (size_t r = 0; r < rows; ++r) {
        float* const total = c + r * kPanelColumns + n;
        const float own = scales.scale[r * scales.stride + b];
        const VF sum = hn::ConvertTo(d, hn::LoadU(di, whole + r * kPanelColumns + n));
        VF v = hn::MulAdd(hn::Mul(sum, hn::Set(d, own)), scale, hn::LoadU(d, total));
        if (kOffsets)
          v = hn::MulAdd(hn::Set(d, own * static_cast<float>(scales.sum[r * scales.stride + b])), offset, v);
        hn::StoreU(v, d, total);
      }
    }
  }
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
