// Attention over whole sequences without a mask, in bf16: the keys and values of a head are rounded and packed once, as
// panels of narrow_gemm.h's form, then any number of threads take queries through both products.
//
//   out = softmax(scale * q K^T) V        q, K, V and the probabilities before their division rounded to bf16, sums in
//   f32
//
// A query's values depend on nothing but the query, the keys and the values: neither on the range it is in nor on
// threads. Exponentials are within 1e-5 of their value.  Nothing is allocated.
#pragma once

#include <cstddef>
#include <span>

#include "base/thread_team.h"
#include "tensor/view.h"

namespace syrinx::kernels {

// Bytes of one head's packed keys and values.
size_t packed_head_bytes(size_t keys, size_t head_width);
// Packs k, v [n, K], rows of any stride, as keys [first, first + n) of `keys`; n may be 0.  Different keys may be
// packed by different threads as long as `first` is even, and all must be there before anybody attends.  `to` has
// packed_head_bytes(keys, K) and starts at a multiple of 64.
void pack_head(View<const float, 2> k, View<const float, 2> v, size_t first, size_t keys, std::span<std::byte> to);

struct PackedAttention {
  View<const float, 2> q;           // [N, K], one head's columns
  std::span<const std::byte> head;  // of pack_head()
  size_t keys = 0;                  // M, at least 1
  float scale = 1.0f;               // above 0
};

// Bytes of scratch that one call needs.
size_t packed_attention_scratch_bytes(size_t keys, size_t head_width);

// Rows `queries` of out [N, K], which must not overlap the input.  Scratch starts at a multiple of 64.
void packed_attention(const PackedAttention& input, Range queries, std::span<std::byte> scratch, View<float, 2> out);

}  // namespace syrinx::kernels
