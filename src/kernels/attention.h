// Multi-head attention over whole sequences, without a mask: for each head h,
//   out[:, h] = softmax(scale * q[:, h] k[:, h]^T) v[:, h].
// Threads split the heads: each calls with its own range and its own scratch.
#pragma once

#include <cstddef>
#include <span>

#include "tensor/view.h"

namespace syrinx::kernels {

// N queries, M keys, H heads, K floats a head.  Head h owns columns [h K, (h + 1) K).  Rows are contiguous and may have
// any stride, so that q, k and v can lie in one matrix [N, 3 H K].
struct AttentionInput {
  View<const float, 2> q;  // [N, H * K]
  View<const float, 2> k;  // [M, H * K]
  View<const float, 2> v;  // [M, H * K]
  size_t head_width = 64;  // K
  float scale = 1.0f;
};

// Floats of scratch that one call needs, whatever the number of heads.
size_t attention_scratch_size(size_t keys, size_t head_width);

// Heads [head_begin, head_end) into the same columns of out [N, H * K], which must not overlap the input.
// scratch: attention_scratch_size(M, K) floats at least; no alignment is asked for.  Accuracy as of float sums.
void attention(const AttentionInput& input, size_t head_begin, size_t head_end, std::span<float> scratch,
               View<float, 2> out);

}  // namespace syrinx::kernels
