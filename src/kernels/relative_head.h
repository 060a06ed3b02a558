// Multi-head attention with relative positions over a whole sequence, a head at a time: what relative_attention.h
// computes, as products of panels.  The keys and values of the head are packed into the scratch, in f32 or rounded to
// bf16; blocks of 14 queries are multiplied by all keys that they see and by all positions between, and a query's
// scores read its positions shifted by its own place:
//
//   score(i, j) = scale * (q_i . k_j + q_i . p_{i - j} + c_{i - j}),   out_i = softmax over the keys it sees of score v
//
// q already holds the content bias u; c is what the other bias adds, (v - u) . p.  In bf16 q, k, p, v and the weights
// before their division are rounded to bf16, sums are f32, exponentials within 1e-5 of their value.
//
// A query that sees a score that is not a number, or positive infinity, gets values that are not numbers, in both
// types. A query's values depend on nothing but the query and what it sees.  Nothing is allocated; threads take heads.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/relative_attention.h"
#include "tensor/dtype.h"
#include "tensor/view.h"

namespace syrinx::kernels {

// Positions of one head by falling offset (query minus key), as panels; `type` is kF32 or kBF16.
size_t packed_positions_bytes(DType type, size_t offsets, size_t head_width);
// Rows [O, K] of any stride, to a multiple of 64.
void pack_positions(DType type, View<const float, 2> positions, std::span<std::byte> to);

struct RelativeHead {
  DType type = DType::kF32;
  View<const float, 2> q, k, v;          // [N, K], one head's columns; query i has the place of key i
  std::span<const std::byte> positions;  // of pack_positions()
  const float* constants = nullptr;      // [O], with room for a multiple of 32
  size_t offsets = 0;                    // O
  size_t first_offset = 0;               // of position 0: m is the offset first_offset - m; each seen one is there
  std::span<const KeyRange> sees;        // [N], never empty; neither end falls from one query to the next
  float scale = 1.0f;                    // above 0
};

// Bytes of scratch that a call needs.
size_t relative_head_scratch_bytes(DType type, size_t rows, size_t head_width);

// out [N, K], which must not overlap the input.  Scratch starts at a multiple of 64.
void relative_head(const RelativeHead& input, std::span<std::byte> scratch, View<float, 2> out);

}  // namespace syrinx::kernels
