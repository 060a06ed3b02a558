// Narrow inner products with AVX-512 VNNI and BF16, behind our own processor test (dispatch.h); gemm_int8_x86.cc says
// why they are not Highway's.
#if defined(__x86_64__)

#if !defined(__clang__)
// GCC 12 takes its own placeholder for a register without content for a mistake (its bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/gemm_block.h"
#include "kernels/cpu/narrow_block.h"
#include "tensor/packed_matrix.h"

#define SYRINX_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define SYRINX_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#define SYRINX_WIDE __attribute__((target("avx512f"), always_inline)) inline  // part of a function of either

namespace syrinx::kernels {
namespace {

// A step of the inner loops of int8 and bf16: two lines of weights, and 4 bytes of each row.
constexpr size_t kStepBytes = 128;

SYRINX_VNNI inline __m512i broadcast4(const std::byte* a) {
  int32_t four;
  std::memcpy(&four, a, sizeof four);
  return _mm512_set1_epi32(four);
}

// Where the weights to come are fetched from.  A block that reads its weights alone fetches all of a step; blocks that
// share them fetch a part each, so that memory works while any of them multiplies.
struct Ahead {
  const char* at;
  size_t step;
};
// Few rows wait for memory, and want the lines in the first level.  Many rows multiply longer than they read: there the
// second level is near enough, and has room for what comes much later.
template <bool kFar>
inline void prefetch_line(const char* at) {
  _mm_prefetch(at, kFar ? _MM_HINT_T1 : _MM_HINT_T0);
}
// Behind the last panel lies whatever is read next, or nothing.
template <bool kFar, bool kShared>
inline void prefetch_step(const void* panel, Ahead& ahead) {
  if constexpr (kShared) {
    prefetch_line<kFar>(ahead.at);
    ahead.at += ahead.step;
  } else {
    const char* const at = static_cast<const char*>(panel) + (kFar ? kFarPrefetchBytes : kPrefetchBytes);
    prefetch_line<kFar>(at);
    prefetch_line<kFar>(at + 64);
  }
}
constexpr size_t kFarRows = 8, kInt4FarRows = 5;

// Calls block(rows as a constant) for rows in [1, kMost].
template <size_t kMost, class Block>
void with_rows(size_t rows, const Block& block) {
  if (rows == kMost) return block(std::integral_constant<size_t, kMost>());
  if constexpr (kMost > 1) with_rows<kMost - 1>(rows, block);
}

SYRINX_WIDE __m512i load16(const int32_t* from) { return _mm512_loadu_si512(from); }
SYRINX_WIDE __m512 load16(const float* from) { return _mm512_loadu_ps(from); }
SYRINX_WIDE void store16(__m512i v, int32_t* to) { _mm512_storeu_si512(to, v); }
SYRINX_WIDE void store16(__m512 v, float* to) { _mm512_storeu_ps(to, v); }

// A block's sums in registers, from what is in c [rows][32] or from zero, and back.
template <class T, class V, size_t kRows>
SYRINX_WIDE void begin_sums(bool goes_on, const T* c, V (&sum0)[kRows], V (&sum1)[kRows]) {
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) sum0[r] = sum1[r] = V{};
  if (!goes_on) return;
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    sum0[r] = load16(c + r * 32);
    sum1[r] = load16(c + r * 32 + 16);
  }
}
template <class T, class V, size_t kRows>
SYRINX_WIDE void keep_sums(const V (&sum0)[kRows], const V (&sum1)[kRows], T* c) {
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    store16(sum0[r], c + r * 32);
    store16(sum1[r], c + r * 32 + 16);
  }
}

// goes_on: the sums go on from what is in c.
template <size_t kRows, bool kShared>
SYRINX_VNNI void int8_block(const std::byte* rows, size_t stride, size_t steps, const int8_t* panel, Ahead ahead,
                            bool goes_on, int32_t* c) {
  __m512i sum0[kRows], sum1[kRows];
  begin_sums(kShared && goes_on, c, sum0, sum1);
  for (size_t k = 0; k < steps; ++k, panel += 128) {
    prefetch_step<kShared || kRows >= kFarRows, kShared>(panel, ahead);
    const __m512i w0 = _mm512_loadu_si512(panel), w1 = _mm512_loadu_si512(panel + 64);
    SYRINX_UNROLL
    for (size_t r = 0; r < kRows; ++r) {
      const __m512i a = broadcast4(rows + r * stride + 4 * k);
      sum0[r] = _mm512_dpbusd_epi32(sum0[r], a, w0);
      sum1[r] = _mm512_dpbusd_epi32(sum1[r], a, w1);
    }
  }
  keep_sums(sum0, sum1, c);
}

SYRINX_VNNI inline __m512 scales16(const std::byte* bf16) {
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bf16));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

// Weights are the unsigned operand, 0 to 15, and activations the signed one.  The sums start at what takes the weights'
// offset of 8 off again.  With six rows 12 sums of integers and 12 of floats fit the 32 registers.
constexpr size_t kInt4Rows = 6;
constexpr size_t kGroupScales = 2 * kPanelColumns;  // bytes

// term: of the first group and row, `term_stride` from row to row.
template <size_t kRows, bool kShared>
SYRINX_VNNI void int4_block(const NarrowBlock& x, const int32_t* term, size_t term_stride, const std::byte* panel,
                            Ahead ahead, bool goes_on, float* c) {
  const __m512i mask = _mm512_set1_epi8(0x0F);
  __m512 total0[kRows], total1[kRows];
  begin_sums(kShared && goes_on, c, total0, total1);
  const std::byte *a = x.rows, *const end = a + x.depth;
  for (; a != end; ++term) {
    const __m512 scale0 = scales16(panel), scale1 = scales16(panel + 32);
    panel += 64;
    __m512i sum0[kRows], sum1[kRows];
    SYRINX_UNROLL
    for (size_t r = 0; r < kRows; ++r) sum0[r] = sum1[r] = _mm512_set1_epi32(term[r * term_stride]);
    for (size_t k = 0; k < kInt4Group; k += 8, panel += kStepBytes, a += 8) {
      prefetch_step<kShared || kRows >= kInt4FarRows, kShared>(panel, ahead);
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
  keep_sums(total0, total1, c);
}

SYRINX_VNNI inline __m512 halves16(const std::byte* f16) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(f16)));
}

// Rows whose sums of integers and floats fit the 32 registers beside the scales and weights of a block.
constexpr size_t kBlockRows = 5;
constexpr size_t kBlockScales = 2 * kPanelColumns;  // bytes of one number a column
constexpr size_t kInt8BlockBytes = kBlockScales + kBlockInputs * kPanelColumns;
constexpr size_t kInt4BlockBytes = 2 * kBlockScales + kBlockInputs / 2 * kPanelColumns;

// Four lines of a block of int4 and its 32 inputs, weights unsigned.
template <size_t kRows, bool kFar>
SYRINX_VNNI inline void int4_block_sums(const std::byte* a, size_t stride, const std::byte* weights,
                                        __m512i (&sum0)[kRows], __m512i (&sum1)[kRows]) {
  const __m512i mask = _mm512_set1_epi8(0x0F);
  SYRINX_UNROLL
  for (size_t k = 0; k < kBlockInputs; k += 8, weights += kStepBytes, a += 8) {
    Ahead unused{};
    prefetch_step<kFar, false>(weights, unused);
    const __m512i w0 = _mm512_loadu_si512(weights), w1 = _mm512_loadu_si512(weights + 64);
    const __m512i low0 = _mm512_and_si512(w0, mask), low1 = _mm512_and_si512(w1, mask);
    const __m512i high0 = _mm512_and_si512(_mm512_srli_epi16(w0, 4), mask);
    const __m512i high1 = _mm512_and_si512(_mm512_srli_epi16(w1, 4), mask);
    SYRINX_UNROLL
    for (size_t r = 0; r < kRows; ++r) {
      const __m512i first = broadcast4(a + r * stride), second = broadcast4(a + r * stride + 4);
      sum0[r] = _mm512_dpbusd_epi32(sum0[r], low0, first);
      sum1[r] = _mm512_dpbusd_epi32(sum1[r], low1, first);
      sum0[r] = _mm512_dpbusd_epi32(sum0[r], high0, second);
      sum1[r] = _mm512_dpbusd_epi32(sum1[r], high1, second);
    }
  }
}

// The same of int8, whose signed weights plus 128 are the unsigned operand.
template <size_t kRows, bool kFar>
SYRINX_VNNI inline void int8_block_sums(const std::byte* a, size_t stride, const std::byte* weights,
                                        __m512i (&sum0)[kRows], __m512i (&sum1)[kRows]) {
  const __m512i away = _mm512_set1_epi8(static_cast<char>(0x80));
  SYRINX_UNROLL
  for (size_t k = 0; k < kBlockInputs; k += 4, weights += kStepBytes, a += 4) {
    Ahead unused{};
    prefetch_step<kFar, false>(weights, unused);
    const __m512i w0 = _mm512_xor_si512(_mm512_loadu_si512(weights), away);
    const __m512i w1 = _mm512_xor_si512(_mm512_loadu_si512(weights + 64), away);
    SYRINX_UNROLL
    for (size_t r = 0; r < kRows; ++r) {
      const __m512i four = broadcast4(a + r * stride);
      sum0[r] = _mm512_dpbusd_epi32(sum0[r], w0, four);
      sum1[r] = _mm512_dpbusd_epi32(sum1[r], w1, four);
    }
  }
}

template <bool kInt4, size_t kRows, bool kFar>
SYRINX_VNNI void blocks_block(const NarrowBlock& x, const BlockScales& scales, const std::byte* panel, bool goes_on,
                              float* c) {
  __m512 total0[kRows], total1[kRows];
  begin_sums(goes_on, c, total0, total1);
  for (size_t b = 0; b < x.depth / kBlockInputs; ++b) {
    const std::byte* const a = x.rows + b * kBlockInputs;
    const __m512 scale0 = halves16(panel), scale1 = halves16(panel + 32);
    __m512 offset0{}, offset1{};
    __m512i sum0[kRows], sum1[kRows];
    SYRINX_UNROLL
    for (size_t r = 0; r < kRows; ++r)
      sum0[r] = sum1[r] = _mm512_set1_epi32(kInt4 ? 0 : -128 * scales.sum[r * scales.stride + b]);
    if constexpr (kInt4) {
      offset0 = halves16(panel + kBlockScales), offset1 = halves16(panel + kBlockScales + 32);
      int4_block_sums<kRows, kFar>(a, x.stride, panel + 2 * kBlockScales, sum0, sum1);
      panel += kInt4BlockBytes;
    } else {
      int8_block_sums<kRows, kFar>(a, x.stride, panel + kBlockScales, sum0, sum1);
      panel += kInt8BlockBytes;
    }
    SYRINX_UNROLL
    for (size_t r = 0; r < kRows; ++r) {
      const float own = scales.scale[r * scales.stride + b];
      const __m512 scale = _mm512_set1_ps(own);
      total0[r] = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sum0[r]), scale), scale0, total0[r]);
      total1[r] = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sum1[r]), scale), scale1, total1[r]);
      if constexpr (kInt4) {
        const __m512 sum = _mm512_set1_ps(own * static_cast<float>(scales.sum[r * scales.stride + b]));
        total0[r] = _mm512_fmadd_ps(sum, offset0, total0[r]);
        total1[r] = _mm512_fmadd_ps(sum, offset1, total1[r]);
      }
    }
  }
  keep_sums(total0, total1, c);
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

template <size_t kRows, bool kShared>
SYRINX_BF16 void bf16_block(const NarrowBlock& x, const uint16_t* panel, Ahead ahead, bool goes_on, float* c) {
  __m512 sum0[kRows], sum1[kRows];
  begin_sums(kShared && goes_on, c, sum0, sum1);
  const std::byte* tap = x.rows;
  for (size_t t = 0; t < x.taps; ++t, tap += x.tap_stride) {
    for (size_t k = 0; k < x.depth; k += 2, panel += 64) {
      prefetch_step<kShared || kRows >= kFarRows, kShared>(panel, ahead);
      const __m512bh w0 = load_pairs(panel), w1 = load_pairs(panel + 32);
      SYRINX_UNROLL
      for (size_t r = 0; r < kRows; ++r) {
        const __m512bh a = broadcast_pair(tap + r * x.stride + 2 * k);
        sum0[r] = _mm512_dpbf16_ps(sum0[r], a, w0);
        sum1[r] = _mm512_dpbf16_ps(sum1[r], a, w1);
      }
    }
  }
  keep_sums(sum0, sum1, c);
}

// A run of depths; c [rows][32] goes on.
template <size_t kRows>
SYRINX_VNNI void int16_run(const int16_t* rows, size_t stride, size_t depth, const int16_t* panel, const float* scale,
                           float* c) {
  __m512i sum0[kRows], sum1[kRows];
  begin_sums<int32_t>(false, nullptr, sum0, sum1);
  for (size_t k = 0; k < depth; k += 2, panel += 64) {
    Ahead unused{};
    prefetch_step<kRows >= kFarRows, false>(panel, unused);
    const __m512i w0 = _mm512_loadu_si512(panel), w1 = _mm512_loadu_si512(panel + 32);
    SYRINX_UNROLL
    for (size_t r = 0; r < kRows; ++r) {
      const __m512i a = broadcast4(reinterpret_cast<const std::byte*>(rows + r * stride + k));
      sum0[r] = _mm512_dpwssd_epi32(sum0[r], a, w0);
      sum1[r] = _mm512_dpwssd_epi32(sum1[r], a, w1);
    }
  }
  // Through memory: GCC 12 keeps sums that are used otherwise there in the loop, too.
  alignas(64) int32_t whole[kRows * kPanelColumns];
  keep_sums(sum0, sum1, whole);
  for (size_t r = 0; r < kRows; ++r) {
    const __m512 own = _mm512_set1_ps(scale[r]);
    for (size_t n = r * kPanelColumns; n < (r + 1) * kPanelColumns; n += 16)
      store16(_mm512_fmadd_ps(_mm512_cvtepi32_ps(load16(whole + n)), own, load16(c + n)), c + n);
  }
}

// More rows than a block has share each piece of a panel while it is in the first-level cache.
struct Part {
  size_t row, rows;    // of the block
  size_t step, steps;  // of the piece
  Ahead ahead;
};
// Calls multiply(part) for blocks of at most `most` rows and pieces of at most `piece` of the panel's steps, each of
// step_bytes in so many prefetches.
template <class Multiply>
void each_part(size_t rows, size_t most, size_t steps, size_t piece, size_t step_bytes, size_t prefetches,
               const void* panel, const Multiply& multiply) {
  const size_t block = even_step(rows, most), blocks = (rows + block - 1) / block;
  for (size_t step = 0; step < steps; step += piece) {
    Part part{.row = 0, .rows = 0, .step = step, .steps = std::min(piece, steps - step), .ahead = {}};
    const char* ahead = static_cast<const char*>(panel) + step_bytes * step + kFarPrefetchBytes;
    const size_t ahead_step = step_bytes / (blocks * prefetches);
    for (; part.row < rows; part.row += block, ahead += part.steps * prefetches * ahead_step) {
      part.rows = std::min(block, rows - part.row);
      part.ahead = {ahead, ahead_step};
      multiply(part);
    }
  }
}

constexpr size_t kPieceSteps = 128;  // 16 kB
// More rows than kBlockRows share pieces of so many blocks, which are in the first-level cache for all but the first.
constexpr size_t kPieceBlocks = 16;

template <bool kInt4>
void blocks_vnni(const NarrowBlock& x, const BlockScales& scales, const std::byte* panel, size_t rows, float* c) {
  constexpr size_t kBytes = kInt4 ? kInt4BlockBytes : kInt8BlockBytes;
  if (rows <= kBlockRows) {
    with_rows<kBlockRows>(rows, [&](auto n) { blocks_block<kInt4, n(), false>(x, scales, panel, false, c); });
    return;
  }
  const size_t blocks = x.depth / kBlockInputs, step = even_step(rows, kBlockRows);
  for (size_t first = 0; first < blocks; first += kPieceBlocks) {
    const size_t depth = std::min(kPieceBlocks, blocks - first) * kBlockInputs;
    for (size_t row = 0; row < rows; row += step) {
      const NarrowBlock part{
          .rows = x.rows + row * x.stride + first * kBlockInputs, .stride = x.stride, .depth = depth};
      const size_t at = row * scales.stride + first;
      const BlockScales own{.scale = scales.scale + at, .sum = scales.sum + at, .stride = scales.stride};
      with_rows<kBlockRows>(std::min(step, rows - row), [&](auto n) {
        blocks_block<kInt4, n(), true>(part, own, panel + first * kBytes, first > 0, c + row * kPanelColumns);
      });
    }
  }
}

constexpr size_t kPieceGroups = 8, kGroupBytes = kGroupScales + kInt4Group / 2 * kPanelColumns;

}  // namespace

void int8_rows_vnni(const NarrowBlock& x, const int8_t* panel, size_t rows, int32_t* c) {
  const size_t steps = x.depth / 4;
  if (rows <= kNarrowRows) {
    with_rows<kNarrowRows>(rows, [&](auto n) { int8_block<n(), false>(x.rows, x.stride, steps, panel, {}, false, c); });
    return;
  }
  each_part(rows, kNarrowRows, steps, kPieceSteps, kStepBytes, 1, panel, [&](const Part& p) {
    with_rows<kNarrowRows>(p.rows, [&](auto n) {
      int8_block<n(), true>(x.rows + p.row * x.stride + 4 * p.step, x.stride, p.steps, panel + 128 * p.step, p.ahead,
                            p.step > 0, c + p.row * kPanelColumns);
    });
  });
}

void int4_rows_vnni(const NarrowBlock& x, const int32_t* group_term, const std::byte* panel, size_t rows, float* c) {
  const size_t groups = x.depth / kInt4Group;
  if (rows <= kInt4Rows) {
    with_rows<kInt4Rows>(rows, [&](auto n) { int4_block<n(), false>(x, group_term, groups, panel, {}, false, c); });
    return;
  }
  each_part(rows, kInt4Rows, groups, kPieceGroups, kGroupBytes, kInt4Group / 8, panel, [&](const Part& p) {
    const NarrowBlock part{
        .rows = x.rows + p.row * x.stride + kInt4Group * p.step, .stride = x.stride, .depth = kInt4Group * p.steps};
    with_rows<kInt4Rows>(p.rows, [&](auto n) {
      int4_block<n(), true>(part, group_term + p.row * groups + p.step, groups, panel + kGroupBytes * p.step, p.ahead,
                            p.step > 0, c + p.row * kPanelColumns);
    });
  });
}

void int8_blocks_vnni(const NarrowBlock& x, const BlockScales& scales, const std::byte* panel, size_t rows, float* c) {
  blocks_vnni<false>(x, scales, panel, rows, c);
}
void int4_blocks_vnni(const NarrowBlock& x, const BlockScales& scales, const std::byte* panel, size_t rows, float* c) {
  blocks_vnni<true>(x, scales, panel, rows, c);
}

void bf16_rows_avx512(const NarrowBlock& x, const uint16_t* panel, size_t rows, float* c) {
  if (rows <= kNarrowRows) {
    with_rows<kNarrowRows>(rows, [&](auto n) { bf16_block<n(), false>(x, panel, {}, false, c); });
    return;
  }
  each_part(rows, kNarrowRows, x.depth / 2, kPieceSteps, kStepBytes, 1, panel, [&](const Part& p) {
    const NarrowBlock part{.rows = x.rows + p.row * x.stride + 4 * p.step, .stride = x.stride, .depth = 2 * p.steps};
    with_rows<kNarrowRows>(p.rows, [&](auto n) {
      bf16_block<n(), true>(part, panel + 64 * p.step, p.ahead, p.step > 0, c + p.row * kPanelColumns);
    });
  });
}

void int16_rows_vnni(const Int16Block& x, const int16_t* panel, size_t rows, float* c) {
  with_rows<kNarrowRows>(rows, [&](auto n) {
    for (size_t t = 0; t < x.taps; ++t) {
      for (size_t k = 0; k < x.depth; k += kInt16Run) {
        const size_t depth = std::min(kInt16Run, x.depth - k);
        int16_run<n()>(x.rows + t * x.tap_stride + k, x.stride, depth, panel, x.scale + t * x.scale_step, c);
        panel += depth * kPanelColumns;
      }
    }
  });
}

SYRINX_BF16 void round_to_bf16_avx512(const float* x, size_t count, uint16_t* to) {
  for (size_t i = 0; i < count; i += 16) {
    const __m256bh halves = _mm512_cvtneps_pbh(_mm512_loadu_ps(x + i));
    std::memcpy(to + i, &halves, sizeof halves);
  }
}

SYRINX_BF16 void round_panel_avx512(const float* values, size_t rows, uint16_t* to, size_t stride) {
  for (size_t r = 0; r < rows; ++r, values += kPanelColumns, to += stride) {
    const __m512bh row = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(values + 16), _mm512_loadu_ps(values));
    std::memcpy(to, &row, sizeof row);
  }
}

}  // namespace syrinx::kernels

#endif  // __x86_64__
