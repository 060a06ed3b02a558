// Causal attention of some new positions over a cache of keys and values, with an optional window and with query heads
// that share key heads: query head h uses key head h * G / H (grouped-query attention).
//
// The cache is a ring of R rows: position p lies in row p mod R.  A cache that holds everything is the ring whose R is
// its capacity.  The query at position p sees the keys of positions p - window + 1 to p, or 0 to p without a window.
// A prefix, rows that several caches share, holds the first P positions; then position p >= P lies in row (p - P) mod
// R.  Threads split the query heads: each calls with its own range and its own scratch.
//
// The cache is in f32, in bf16, or in int8 with a scale a row and key head, and is widened in registers: products and
// sums are of floats in any case.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "base/thread_team.h"
#include "tensor/view.h"

namespace syrinx::kernels {

// N queries, H query heads, G key heads, K numbers a head, heads side by side; T is float, uint16_t for bf16, or
// int8_t. Rows are contiguous, of any stride. The rows of the positions that are seen must have been written, the
// queries' own included; no other row is read.
template <class T>
struct CacheAttention {
  View<const float, 2> q;            // [N, H * K]; row n is position first_position + n
  View<const T, 2> keys;             // [R, G * K]
  View<const T, 2> values;           // [R, G * K]
  View<const T, 2> prefix_keys{};    // [P, G * K], none without a prefix, which no window may go with
  View<const T, 2> prefix_values{};  // [P, G * K]
  // With int8: number = scale * int8, a scale for each row and key head, [R, G] and [P, G].
  View<const float, 2> key_scales{}, value_scales{};
  View<const float, 2> prefix_key_scales{}, prefix_value_scales{};
  size_t heads = 1;       // H
  size_t key_heads = 1;   // G, divides H
  size_t head_size = 64;  // K
  size_t first_position = 0;
  size_t window = 0;  // keys seen by a query, itself included; 0: all.  Either first_position + N - P or
                      // window + N - 1 must not exceed R
  float scale = 1.0f;
  // For a single position (N = 1), whose long cache several threads attend to in parts: positions outside
  // [see_from, see_to) are not seen, and the log of the sum of the exponentials of query head h goes to log_sums[h]. At
  // least one position must be seen.
  size_t see_from = 0, see_to = std::numeric_limits<size_t>::max();
  float* log_sums = nullptr;  // [H], or none
};
using CacheAttentionInput = CacheAttention<float>;
using Bf16CacheAttentionInput = CacheAttention<uint16_t>;
using Int8CacheAttentionInput = CacheAttention<int8_t>;

// The parts of a query's result as one: `parts` [P, K], each over positions of its own, and the logs of the sums of
// their exponentials, P numbers `stride` apart; out [K] may be the first part.
void merge_attention(View<const float, 2> parts, const float* log_sums, size_t stride, float* out);

// Floats of scratch that one call needs for P + R rows.
size_t cache_attention_scratch_size(size_t rows);

// Query heads `heads` into the same columns of out [N, H * K], which must not overlap the input.  Accuracy as of float
// sums.  A query's result depends neither on the range of heads nor on which others go through in the same call, but a
// single position (N = 1) takes another way, with other roundings.
void cache_attention(const CacheAttentionInput& input, Range heads, std::span<float> scratch, View<float, 2> out);
void cache_attention(const Bf16CacheAttentionInput& input, Range heads, std::span<float> scratch, View<float, 2> out);
void cache_attention(const Int8CacheAttentionInput& input, Range heads, std::span<float> scratch, View<float, 2> out);

}  // namespace syrinx::kernels
