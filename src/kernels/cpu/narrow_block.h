// Internal: the inner products behind narrow_gemm.h on instructions that Highway 1.0.3 lacks.  Each computes `rows` x
// 32 sums of one panel into c [rows][32]; rows <= kNarrowTile.  Callers ask dispatch.h first.
#pragma once

#include <cstddef>
#include <cstdint>

namespace syrinx::kernels {

inline constexpr size_t kNarrowRows = 14;
inline constexpr size_t kNarrowTile = 3 * kNarrowRows;
// Rows of a block when `rows` go through blocks of `most` at most: 16 are two blocks of 8, as 14 and 2 would be slower.
constexpr size_t even_step(size_t rows, size_t most) {
  const size_t blocks = rows == 0 ? 1 : (rows + most - 1) / most;
  return (rows + blocks - 1) / blocks;
}
// How far ahead of the weights that are multiplied others are asked for (docs/journal.md).
inline constexpr size_t kPrefetchBytes = 8192;      // of few rows, into the first-level cache
inline constexpr size_t kFarPrefetchBytes = 24576;  // of many rows, into the second-level cache

// Activations of blocks: scales and sums of the rows' blocks, `stride` from row to row.
struct BlockScales {
  const float* scale = nullptr;
  const int32_t* sum = nullptr;
  size_t stride = 0;
};

// Rows of activations, `stride` bytes apart.
struct NarrowBlock {
  const std::byte* rows = nullptr;
  size_t stride = 0;
  size_t depth = 0;  // of the matrix
  size_t taps = 1;   // more than one: products of bf16 alone
  size_t tap_stride = 0;
};

// Rows of int16, `stride` numbers apart, with a scale each.
struct Int16Block {
  const int16_t* rows = nullptr;
  size_t stride = 0, depth = 0, taps = 1, tap_stride = 0;
  const float* scale = nullptr;  // of the first row's first tap
  size_t scale_step = 0;         // from tap to tap
};

#if defined(__x86_64__)
// Adds the scaled sums to c.
void int16_rows_vnni(const Int16Block& x, const int16_t* panel, size_t rows, float* c);
// AVX-512 VNNI.  Activations are bytes plus 128: the sums are too large by 128 times the column's sum.
void int8_rows_vnni(const NarrowBlock& x, const int8_t* panel, size_t rows, int32_t* c);
// Activations are signed; group_term as in NarrowRows, from the first row on.
void int4_rows_vnni(const NarrowBlock& x, const int32_t* group_term, const std::byte* panel, size_t rows, float* c);
// Activations are signed.
void int8_blocks_vnni(const NarrowBlock& x, const BlockScales& scales, const std::byte* panel, size_t rows, float* c);
void int4_blocks_vnni(const NarrowBlock& x, const BlockScales& scales, const std::byte* panel, size_t rows, float* c);
// AVX-512 BF16.
void bf16_rows_avx512(const NarrowBlock& x, const uint16_t* panel, size_t rows, float* c);
void round_to_bf16_avx512(const float* x, size_t count, uint16_t* to);  // count a multiple of 16
// [rows, 32] numbers side by side to rows `stride` apart.
void round_panel_avx512(const float* values, size_t rows, uint16_t* to, size_t stride);
#endif
#if defined(__aarch64__)
// The dot product of Armv8.2; activations are signed.
void int8_rows_dotprod(const NarrowBlock& x, const int8_t* panel, size_t rows, int32_t* c);
void int4_rows_dotprod(const NarrowBlock& x, const int32_t* group_term, const std::byte* panel, size_t rows, float* c);
// The whole sums of x.depth inputs, of nibbles as they are.
void int4_sums_dotprod(const NarrowBlock& x, const std::byte* weights, size_t rows, int32_t* c);
// BF16 of Armv8.6; a pair's sum, and its sum with what is there, are rounded to odd.
void bf16_rows_neon(const NarrowBlock& x, const uint16_t* panel, size_t rows, float* c);
#endif

}  // namespace syrinx::kernels
