// Narrow inner products with AVX-512 VNNI and BF16, behind our own processor test (dispatch.h); gemm_int8_x86.cc says
// why they are not Highway's.
#if defined(__x86_64__)

#if !defined(__clang__)
// GCC 12 takes its own placeholder for a register without content for a mistake (its bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include <immintrin.h>

#include <cstring>
#include <type_traits>

#include "kernels/cpu/gemm_block.h"
#include "kernels/cpu/narrow_block.h"
#include "tensor/packed_matrix.h"

#define SYRINX_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define SYRINX_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

namespace syrinx::kernels {
namespace {

SYRINX_VNNI inline __m512i broadcast4(const std::byte* a) {
  int32_t four;
  std::memcpy(&four, a, sizeof four);
  return _mm512_set1_epi32(four);
}

// The next two lines of weights to come; behind the last panel lies whatever is read next, or nothing.
template <class T>
inline void prefetch128(const T* at) {
  const char* const ahead = reinterpret_cast<const char*>(at) + kPrefetchBytes;
  _mm_prefetch(ahead, _MM_HINT_T0);
  _mm_prefetch(ahead + 64, _MM_HINT_T0);
}

// Calls block(rows as a constant) for rows in [1, kMost].
template <size_t kMost, class Block>
void with_rows(size_t rows, const Block& block) {
  if (rows == kMost) return block(std::integral_constant<size_t, kMost>());
  if constexpr (kMost > 1) with_rows<kMost - 1>(rows, block);
}

template <size_t kRows>
SYRINX_VNNI void int8_block(const NarrowBlock& x, const int8_t* panel, int32_t* c) {
  __m512i sum0[kRows], sum1[kRows];
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) sum0[r] = sum1[r] = _mm512_setzero_si512();
  for (size_t k = 0; k < x.depth; k += 4, panel += 128) {
    prefetch128(panel);
    const __m512i w0 = _mm512_loadu_si512(panel), w1 = _mm512_loadu_si512(panel + 64);
    SYRINX_UNROLL
    for (size_t r = 0; r < kRows; ++r) {
      const __m512i a = broadcast4(x.rows + r * x.stride + k);
      sum0[r] = _mm512_dpbusd_epi32(sum0[r], a, w0);
      sum1[r] = _mm512_dpbusd_epi32(sum1[r], a, w1);
    }
  }
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    _mm512_storeu_si512(c + r * 32, sum0[r]);
    _mm512_storeu_si512(c + r * 32 + 16, sum1[r]);
  }
}

SYRINX_VNNI inline __m512 scales16(const std::byte* bf16) {
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bf16));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

// Weights are the unsigned operand, 0 to 15, and activations the signed one.  The sums start at what takes the weights'
// offset of 8 off again.  With six rows 12 sums of integers and 12 of floats fit the 32 registers.
constexpr size_t kInt4Rows = 6;

template <size_t kRows>
SYRINX_VNNI void int4_block(const NarrowBlock& x, const int32_t* group_term, const std::byte* panel, float* c) {
  const size_t groups = x.depth / kInt4Group;
  const __m512i mask = _mm512_set1_epi8(0x0F);
  __m512 total0[kRows], total1[kRows];
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) total0[r] = total1[r] = _mm512_setzero_ps();
  const std::byte* a = x.rows;
  for (size_t g = 0; g < groups; ++g) {
    const __m512 scale0 = scales16(panel), scale1 = scales16(panel + 32);
    panel += 64;
    __m512i sum0[kRows], sum1[kRows];
    SYRINX_UNROLL
    for (size_t r = 0; r < kRows; ++r) sum0[r] = sum1[r] = _mm512_set1_epi32(group_term[r * groups + g]);
    for (size_t k = 0; k < kInt4Group; k += 8, panel += 128, a += 8) {
      prefetch128(panel);
      const __m512i w0 = _mm512_loadu_si512(panel), w1 = _mm512_loadu_si512(panel + 64);
      const __m512i low0 = _mm512_and_si512(w0, mask), low1 = _mm512_and_si512(w1, mask);
      const __m512i high0 = _mm512_and_si512(_mm512_srli_epi16(w0, 4), mask);
      const __m512i high1 = _mm512_and_si512(_mm512_srli_epi16(w1, 4), mask);
      SYRINX_UNROLL
      for (size_t r = 0; r < kRows; ++r) {
        const __m512i first = broadcast4(a + r * x.stride), second = broadcast4(a + r * x.stride + 4);
        sum0[r] = _mm512_dpbusd_epi32(sum0[r], low0, first);
        sum1[r] = _mm512_dpbusd_epi32(sum1[r], low1, first);
        sum0[r] = _mm512_dpbusd_epi32(sum0[r], high0, second);
        sum1[r] = _mm512_dpbusd_epi32(sum1[r], high1, second);
      }
    }
    SYRINX_UNROLL
    for (size_t r = 0; r < kRows; ++r) {
      total0[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum0[r]), scale0, total0[r]);
      total1[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum1[r]), scale1, total1[r]);
    }
  }
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    _mm512_storeu_ps(c + r * 32, total0[r]);
    _mm512_storeu_ps(c + r * 32 + 16, total1[r]);
  }
}

SYRINX_BF16 inline __m512bh load_pairs(const void* p) {
  const __m512i bits = _mm512_loadu_si512(p);
  __m512bh pairs;
  std::memcpy(&pairs, &bits, sizeof pairs);
  return pairs;
}

SYRINX_BF16 inline __m512bh broadcast_pair(const std::byte* p) {
  int32_t two;
  std::memcpy(&two, p, sizeof two);
  const __m512i bits = _mm512_set1_epi32(two);
  __m512bh pairs;
  std::memcpy(&pairs, &bits, sizeof pairs);
  return pairs;
}

template <size_t kRows>
SYRINX_BF16 void bf16_block(const NarrowBlock& x, const uint16_t* panel, float* c) {
  __m512 sum0[kRows], sum1[kRows];
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) sum0[r] = sum1[r] = _mm512_setzero_ps();
  const std::byte* tap = x.rows;
  for (size_t t = 0; t < x.taps; ++t, tap += x.tap_stride) {
    for (size_t k = 0; k < x.depth; k += 2, panel += 64) {
      prefetch128(panel);
      const __m512bh w0 = load_pairs(panel), w1 = load_pairs(panel + 32);
      SYRINX_UNROLL
      for (size_t r = 0; r < kRows; ++r) {
        const __m512bh a = broadcast_pair(tap + r * x.stride + 2 * k);
        sum0[r] = _mm512_dpbf16_ps(sum0[r], a, w0);
        sum1[r] = _mm512_dpbf16_ps(sum1[r], a, w1);
      }
    }
  }
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    _mm512_storeu_ps(c + r * 32, sum0[r]);
    _mm512_storeu_ps(c + r * 32 + 16, sum1[r]);
  }
}

}  // namespace

void int8_rows_vnni(const NarrowBlock& x, const int8_t* panel, size_t rows, int32_t* c) {
  with_rows<kNarrowRows>(rows, [&](auto n) { int8_block<n()>(x, panel, c); });
}

void int4_rows_vnni(const NarrowBlock& x, const int32_t* group_term, const std::byte* panel, size_t rows, float* c) {
  const size_t step = even_step(rows, kInt4Rows);
  for (size_t r = 0; r < rows; r += step) {
    const NarrowBlock part{.rows = x.rows + r * x.stride, .stride = x.stride, .depth = x.depth};
    with_rows<kInt4Rows>(rows - r < step ? rows - r : step, [&](auto n) {
      int4_block<n()>(part, group_term + r * (x.depth / kInt4Group), panel, c + r * 32);
    });
  }
}

void bf16_rows_avx512(const NarrowBlock& x, const uint16_t* panel, size_t rows, float* c) {
  with_rows<kNarrowRows>(rows, [&](auto n) { bf16_block<n()>(x, panel, c); });
}

SYRINX_BF16 void round_to_bf16_avx512(const float* x, size_t count, uint16_t* to) {
  for (size_t i = 0; i < count; i += 16) {
    const __m256bh halves = _mm512_cvtneps_pbh(_mm512_loadu_ps(x + i));
    std::memcpy(to + i, &halves, sizeof halves);
  }
}

}  // namespace syrinx::kernels

#endif  // __x86_64__
