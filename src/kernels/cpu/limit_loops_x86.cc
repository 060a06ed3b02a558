// Integer and BF16 peaks on x86, with instructions that Highway 1.0.3 does not offer; each behind its own target and
// chosen by the flags of dispatch.h.  avxvnni must never be listed: the compiler would take the VEX form of vpdpbusd,
// an illegal instruction on processors that have only the AVX-512 one.
#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/cpu/gemm_block.h"
#include "kernels/cpu/limit_loops.h"
#include "kernels/dispatch.h"

#define SYRINX_AVX2 __attribute__((target("avx2,fma")))
#define SYRINX_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define SYRINX_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define SYRINX_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
// Makes a register's value unknown at no cost, so that a product of constants is not taken out of the loop.  The sums
// start differently, because equal chains would be one to the compiler; unrolled, they stay in registers.
#define SYRINX_UNKNOWN(value) __asm__ volatile("" : "+v"(value))

namespace syrinx::kernels {
namespace {

// Six sums (with two temporaries each they fit sixteen registers) of one product a step.
SYRINX_AVX2 float exact_avx2(size_t iterations) {
  constexpr int kSums = 6;
  __m256i sum[kSums], u = _mm256_set1_epi8(3);
  SYRINX_UNROLL
  for (int k = 0; k < kSums; ++k) sum[k] = _mm256_set1_epi32(k);
  const __m256i w = _mm256_set1_epi8(-2), ones = _mm256_set1_epi16(1);
  for (size_t i = 0; i < iterations; ++i) {
    SYRINX_UNROLL
    for (__m256i& s : sum) {
      __asm__ volatile("" : "+x"(u));
      s = _mm256_add_epi32(s, _mm256_madd_epi16(_mm256_maddubs_epi16(u, w), ones));
    }
  }
  __m256i total = sum[0];
  SYRINX_UNROLL
  for (int k = 1; k < kSums; ++k) total = _mm256_add_epi32(total, sum[k]);
  return static_cast<float>(_mm256_cvtsi256_si32(total));
}

SYRINX_AVX2 float pairs_avx2(size_t iterations) {
  constexpr int kSums = 6;
  __m256i sum[kSums], u = _mm256_set1_epi8(3);
  SYRINX_UNROLL
  for (int k = 0; k < kSums; ++k) sum[k] = _mm256_set1_epi32(k);
  const __m256i w = _mm256_set1_epi8(-2), ones = _mm256_set1_epi16(1);
  for (size_t i = 0; i < iterations; ++i) {
    SYRINX_UNROLL
    for (__m256i& s : sum) {
      __asm__ volatile("" : "+x"(u));
      const __m256i first = _mm256_maddubs_epi16(u, w);
      __asm__ volatile("" : "+x"(u));
      const __m256i both = _mm256_add_epi16(first, _mm256_maddubs_epi16(u, w));
      s = _mm256_add_epi32(s, _mm256_madd_epi16(both, ones));
    }
  }
  __m256i total = sum[0];
  SYRINX_UNROLL
  for (int k = 1; k < kSums; ++k) total = _mm256_add_epi32(total, sum[k]);
  return static_cast<float>(_mm256_cvtsi256_si32(total));
}

constexpr int kWideSums = 16;

SYRINX_AVX512 inline float lane_of(const __m512i* sum) {
  __m512i total = sum[0];
  SYRINX_UNROLL
  for (int k = 1; k < kWideSums; ++k) total = _mm512_add_epi32(total, sum[k]);
  alignas(64) int32_t lanes[16];
  _mm512_store_si512(lanes, total);
  return static_cast<float>(lanes[0]);
}

SYRINX_AVX512 float exact_avx512(size_t iterations) {
  __m512i sum[kWideSums], u = _mm512_set1_epi8(3);
  SYRINX_UNROLL
  for (int k = 0; k < kWideSums; ++k) sum[k] = _mm512_set1_epi32(k);
  const __m512i w = _mm512_set1_epi8(-2), ones = _mm512_set1_epi16(1);
  for (size_t i = 0; i < iterations; ++i) {
    SYRINX_UNROLL
    for (__m512i& s : sum) {
      SYRINX_UNKNOWN(u);
      s = _mm512_add_epi32(s, _mm512_madd_epi16(_mm512_maddubs_epi16(u, w), ones));
    }
  }
  return lane_of(sum);
}

SYRINX_AVX512 float pairs_avx512(size_t iterations) {
  __m512i sum[kWideSums], u = _mm512_set1_epi8(3);
  SYRINX_UNROLL
  for (int k = 0; k < kWideSums; ++k) sum[k] = _mm512_set1_epi32(k);
  const __m512i w = _mm512_set1_epi8(-2), ones = _mm512_set1_epi16(1);
  for (size_t i = 0; i < iterations; ++i) {
    SYRINX_UNROLL
    for (__m512i& s : sum) {
      SYRINX_UNKNOWN(u);
      const __m512i first = _mm512_maddubs_epi16(u, w);
      SYRINX_UNKNOWN(u);
      const __m512i both = _mm512_add_epi16(first, _mm512_maddubs_epi16(u, w));
      s = _mm512_add_epi32(s, _mm512_madd_epi16(both, ones));
    }
  }
  return lane_of(sum);
}

SYRINX_VNNI float dot_vnni(size_t iterations) {
  __m512i sum[kWideSums];
  SYRINX_UNROLL
  for (int k = 0; k < kWideSums; ++k) sum[k] = _mm512_set1_epi32(k);
  const __m512i u = _mm512_set1_epi8(3), w = _mm512_set1_epi8(-2);
  for (size_t i = 0; i < iterations; ++i) {
    SYRINX_UNROLL
    for (__m512i& s : sum) s = _mm512_dpbusd_epi32(s, u, w);
  }
  return lane_of(sum);
}

SYRINX_BF16 float dot_bf16(size_t iterations) {
  __m512 sum[kWideSums];
  SYRINX_UNROLL
  for (int k = 0; k < kWideSums; ++k) sum[k] = _mm512_set1_ps(static_cast<float>(k));
  const __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.25f));
  for (size_t i = 0; i < iterations; ++i) {
    SYRINX_UNROLL
    for (__m512& s : sum) s = _mm512_dpbf16_ps(s, a, a);
  }
  __m512 total = sum[0];
  SYRINX_UNROLL
  for (int k = 1; k < kWideSums; ++k) total = _mm512_add_ps(total, sum[k]);
  alignas(64) float lanes[16];
  _mm512_store_ps(lanes, total);
  return lanes[0];
}

}  // namespace

PeakLoop bf16_peak() { return use_avx512_bf16() ? PeakLoop{dot_bf16, 2.0 * 32 * kWideSums} : PeakLoop{}; }
PeakLoop int8_dot_peak() { return use_avx512_vnni() ? PeakLoop{dot_vnni, 2.0 * 64 * kWideSums} : PeakLoop{}; }

PeakLoop int8_exact_peak() {
  const std::string target = chosen_target_name();
  if (target == "AVX3") return {exact_avx512, 2.0 * 64 * kWideSums};
  if (target == "AVX2") return {exact_avx2, 2.0 * 32 * 6};
  return {};
}
PeakLoop int8_7bit_peak() {
  const std::string target = chosen_target_name();
  if (target == "AVX3") return {pairs_avx512, 2.0 * 128 * kWideSums};
  if (target == "AVX2") return {pairs_avx2, 2.0 * 64 * 6};
  return {};
}

}  // namespace syrinx::kernels

#endif  // __x86_64__
