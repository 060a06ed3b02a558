// Multi-head attention with relative positions (Transformer-XL, arXiv:1901.02860, with the terms of spec
// transducer-asr.md 3.3), for some queries over a sequence of keys:
//
//   score(i, j) = scale * (q_i . k_j + q_i . p_{i - j} + c_{i - j}),   out_i = softmax over the keys it sees of score v
//
// q already holds the content bias u; c is what the other bias adds, (v - u) . p.  Keys lie transposed, one number of
// all keys in a row, and so do the positions, by falling offset, so that the keys of a query run along both:
//
//   keys      [H K, S]   column j: key j
//   positions [H K, O]   column m: the offset `first_offset - m` (query minus key)
//   constants [H, O]     the same columns
//
// The keys may lie in a ring: key j is then column (ring_first + j) mod ring, and so is row of `values`.
// A query sees keys [begin, end), at least one; neither falls from one query to the next.  Queries go in blocks of
// four, so positions must be there for each of them and all keys that any of the four sees.  Threads split the heads.
// Nothing is allocated.  A query's result depends on nothing but the query and the keys that it sees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/view.h"

namespace syrinx::kernels {

// Floats that may be read behind the last column of every row of keys, positions and constants, of any value, finite or
// not.  Two of the longest vectors there can be.
#if defined(__x86_64__)
inline constexpr size_t kRelativeAttentionSlack = 32;
#else
inline constexpr size_t kRelativeAttentionSlack = 128;
#endif

struct KeyRange {
  uint32_t begin = 0, end = 0;
};

struct RelativeAttention {
  View<const float, 2> q;           // [N, H K]
  View<const float, 2> keys;        // [H K, S]
  View<const float, 2> values;      // [S, H K]
  View<const float, 2> positions;   // [H K, O]
  View<const float, 2> constants;   // [H, O]
  std::span<const KeyRange> sees;   // [N]
  ptrdiff_t first_query = 0;        // the place of query 0 among the keys
  ptrdiff_t first_offset = 0;       // of column 0 of positions
  size_t ring = 0, ring_first = 0;  // 0: no ring
  size_t head_size = 64;
  float scale = 1.0f;
};

// Floats of scratch that one call needs; `keys` is the largest number that a query sees.
size_t relative_attention_scratch_size(size_t keys);

// Heads [head_begin, head_end) into the same columns of out [N, H K], which must not overlap the input.
void relative_attention(const RelativeAttention& input, size_t head_begin, size_t head_end, std::span<float> scratch,
                        View<float, 2> out);

// Rows [T, C] into columns [first, first + T) of to [C, S], modulo S where `ring`.
void transpose_rows(View<const float, 2> rows, size_t first, bool ring, View<float, 2> to);

}  // namespace syrinx::kernels
