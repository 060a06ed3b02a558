// A single position's queries go through in blocks of four where they share a key head, so that each key and value is
// loaded once for all four; a query that is alone takes four keys, or up to 64 columns of values, at a time instead.
// Several positions go through sixteen queries at a time (cache_attention_wide-inl.h).
#include "kernels/cache_attention.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/cache_attention.cc"
#if defined(__aarch64__)
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)  // sums live in arrays of vectors
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/bf16-inl.h"
#include "kernels/cpu/cache_attention_spans.h"
#include "kernels/cpu/cache_attention_wide-inl.h"
#include "kernels/cpu/gemm_block.h"
#include "kernels/cpu/softmax-inl.h"

#ifndef SYRINX_KERNELS_CPU_CACHE_ATTENTION_ONCE_
#define SYRINX_KERNELS_CPU_CACHE_ATTENTION_ONCE_
namespace syrinx::kernels {
namespace {

constexpr size_t kBlockQueries = 4;

// Some of the queries of one key head, and where their scores lie: that of position p is scores[r][p - span.begin].
struct QueryBlock {
  size_t rows = 0;
  Span span;                          // of all of them together
  size_t query[kBlockQueries] = {};   // row of q
  size_t column[kBlockQueries] = {};  // of the query head
  float* scores[kBlockQueries] = {};
  float inverse_sum[kBlockQueries] = {};
};

}  // namespace
}  // namespace syrinx::kernels
#endif  // SYRINX_KERNELS_CPU_CACHE_ATTENTION_ONCE_

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {

using F32 = hn::ScalableTag<float>;
using VF = hn::Vec<F32>;

// Vectors of values for a single query: a head of 64 in one go, as many sums as hide the latency of adding to one.
inline constexpr size_t kSumVectors = hn::MaxLanes(F32()) >= 16 ? 4 : 8;

template <size_t kRows>
HWY_INLINE void add_products(const VF (&x)[kRows], VF y, VF (&sums)[kRows]) {
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) sums[r] = hn::MulAdd(x[r], y, sums[r]);
}

// Asks for the lines of a row that will be needed soon.
template <class T>
HWY_INLINE void prefetch_row(const T* row, size_t width) {
  for (size_t c = 0; c < width; c += 64 / sizeof(T)) hwy::Prefetch(row + c);
}

// scores[r][at + k] = q[r] . keys[k] for kRows queries and kKeys consecutive keys.
template <size_t kRows, size_t kKeys, class T>
HWY_INLINE void score_tile(const float* const* q, const T* keys, size_t key_stride, size_t width, float* const* scores,
                           size_t at) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  VF sums[kKeys][kRows], x[kRows];
  SYRINX_UNROLL
  for (size_t k = 0; k < kKeys; ++k) {
    SYRINX_UNROLL
    for (size_t r = 0; r < kRows; ++r) sums[k][r] = hn::Zero(d);
  }
  size_t c = 0;
  for (; c + lanes <= width; c += lanes) {
    SYRINX_UNROLL
    for (size_t r = 0; r < kRows; ++r) x[r] = hn::LoadU(d, q[r] + c);
    SYRINX_UNROLL
    for (size_t k = 0; k < kKeys; ++k) add_products(x, load_as_f32(d, keys + k * key_stride + c), sums[k]);
  }
  if (const size_t rest = width - c; rest > 0) {
    SYRINX_UNROLL
    for (size_t r = 0; r < kRows; ++r) x[r] = load_n(d, q[r] + c, rest);
    SYRINX_UNROLL
    for (size_t k = 0; k < kKeys; ++k) add_products(x, load_n_as_f32(d, keys + k * key_stride + c, rest), sums[k]);
  }
  SYRINX_UNROLL
  for (size_t k = 0; k < kKeys; ++k) {
    SYRINX_UNROLL
    for (size_t r = 0; r < kRows; ++r) scores[r][at + k] = hn::GetLane(hn::SumOfLanes(d, sums[k][r]));
  }
}

template <size_t kRows, size_t kKeys, class T>
void score_block(const CacheAttention<T>& in, size_t key_column, const QueryBlock& block) {
  const float* q[kRows];
  for (size_t r = 0; r < kRows; ++r) q[r] = in.q.row(block.query[r]) + block.column[r];
  const size_t stride = in.keys.stride(0), value_stride = in.values.stride(0);
  const auto key_runs = runs_of(block.span, in.prefix_keys, in.keys);
  const auto value_runs = runs_of(block.span, in.prefix_values, in.values);
  for (size_t i = 0; i < key_runs.size(); ++i) {
    const Run<T>& run = key_runs[i];
    if (run.rows == 0) continue;
    const T *const keys = run.first + key_column, *const values = value_runs[i].first + key_column;
    size_t k = 0;
    for (; k + kKeys <= run.rows; k += kKeys) {
      for (size_t ahead = k; ahead < k + kKeys; ++ahead) prefetch_row(values + ahead * value_stride, in.head_size);
      score_tile<kRows, kKeys>(q, keys + k * stride, stride, in.head_size, block.scores, run.at + k);
    }
    for (; k < run.rows; ++k)
      score_tile<kRows, 1>(q, keys + k * stride, stride, in.head_size, block.scores, run.at + k);
  }
}

// Scores to weights, not yet divided by their sum; what a query does not see weighs nothing.
template <class T>
void weigh(const CacheAttention<T>& in, QueryBlock& block) {
  for (size_t r = 0; r < block.rows; ++r) {
    const Span own = visible(in, block.query[r]);
    float* const scores = block.scores[r];
    const size_t first = own.begin - block.span.begin, last = own.end - block.span.begin;
    std::fill_n(scores, first, 0.0f);
    std::fill(scores + last, scores + block.span.size(), 0.0f);
    const float most = in.log_sums == nullptr ? 0.0f : scaled_maximum(scores + first, in.scale, own.size());
    const float sum = exponentials(scores + first, in.scale, scores + first, own.size());
    block.inverse_sum[r] = 1.0f / sum;
    if (in.log_sums != nullptr) in.log_sums[block.column[r] / in.head_size] = most + std::log(sum);
  }
}

// Columns [c, c + kVectors lanes) of the weighted sums; `rest` is nonzero for the columns behind the last whole vector.
template <size_t kRows, size_t kVectors, class T>
HWY_INLINE void sum_tile(const CacheAttention<T>& in, size_t value_column, const QueryBlock& block, size_t c,
                         size_t rest, View<float, 2> out) {
  const F32 d;
  const size_t lanes = hn::Lanes(d), stride = in.values.stride(0);
  VF sums[kRows][kVectors], x[kVectors];
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    SYRINX_UNROLL
    for (size_t v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  for (const Run<T>& run : runs_of(block.span, in.prefix_values, in.values)) {
    if (run.rows == 0) continue;
    const T* value = run.first + value_column + c;
    for (size_t k = 0; k < run.rows; ++k, value += stride) {
      SYRINX_UNROLL
      for (size_t v = 0; v < kVectors; ++v)
        x[v] = rest > 0 ? load_n_as_f32(d, value, rest) : load_as_f32(d, value + v * lanes);
      SYRINX_UNROLL
      for (size_t r = 0; r < kRows; ++r) add_products(x, hn::Set(d, block.scores[r][run.at + k]), sums[r]);
    }
  }
  for (size_t r = 0; r < block.rows; ++r) {
    float* const to = out.row(block.query[r]) + block.column[r] + c;
    const VF factor = hn::Set(d, block.inverse_sum[r]);
    for (size_t v = 0; v < kVectors; ++v) {
      const VF value = hn::Mul(sums[r][v], factor);
      if (rest > 0) {
        store_n(value, d, to, rest);
      } else {
        hn::StoreU(value, d, to + v * lanes);
      }
    }
  }
}

template <size_t kRows, size_t kVectors, class T>
void sum_block(const CacheAttention<T>& in, size_t value_column, const QueryBlock& block, View<float, 2> out) {
  const size_t lanes = hn::Lanes(F32());
  size_t c = 0;
  for (; c + kVectors * lanes <= in.head_size; c += kVectors * lanes)
    sum_tile<kRows, kVectors>(in, value_column, block, c, 0, out);
  for (; c + lanes <= in.head_size; c += lanes) sum_tile<kRows, 1>(in, value_column, block, c, 0, out);
  if (c < in.head_size) sum_tile<kRows, 1>(in, value_column, block, c, in.head_size - c, out);
}

template <class T>
void attend(const CacheAttention<T>& in, size_t key_column, QueryBlock& block, View<float, 2> out) {
  block.span = {visible(in, block.query[0]).begin, visible(in, block.query[block.rows - 1]).end};
  // The last query stands in for those that are missing; it is computed again and not stored.
  for (size_t r = block.rows; r < kBlockQueries; ++r) {
    block.query[r] = block.query[block.rows - 1];
    block.column[r] = block.column[block.rows - 1];
  }
  const auto scale = [&](View<const float, 2> prefix, View<const float, 2> ring) {
    for (size_t r = 0; kScaled<T> && r < block.rows; ++r)
      scale_positions(block.span, prefix, ring, key_column / in.head_size, block.scores[r], 1);
  };
  if (block.rows == 1) {
    score_block<1, 4>(in, key_column, block);
    scale(in.prefix_key_scales, in.key_scales);
    weigh(in, block);
    scale(in.prefix_value_scales, in.value_scales);
    sum_block<1, kSumVectors>(in, key_column, block, out);
  } else {
    score_block<kBlockQueries, 2>(in, key_column, block);
    scale(in.prefix_key_scales, in.key_scales);
    weigh(in, block);
    scale(in.prefix_value_scales, in.value_scales);
    sum_block<kBlockQueries, 2>(in, key_column, block, out);
  }
}

template <class T>
void attend_cache(const CacheAttention<T>& in, Range heads, float* memory, View<float, 2> out) {
  const size_t group = in.heads / in.key_heads, queries = in.q.extent(0);
  const size_t rows = in.prefix_keys.extent(0) + in.keys.extent(0);
  for (size_t head = heads.begin; head < heads.end;) {
    const size_t key_head = head / group, end = std::min(heads.end, (key_head + 1) * group);
    const size_t here = end - head;
    if (queries > 1) wide::attend(in, head, end, memory, out);
    for (size_t first = 0; queries == 1 && first < here; first += kBlockQueries) {
      QueryBlock block;
      block.rows = std::min(kBlockQueries, here - first);
      for (size_t r = 0; r < kBlockQueries; ++r) block.scores[r] = memory + r * rows;
      for (size_t r = 0; r < block.rows; ++r) {
        block.column[r] = (head + first + r) * in.head_size;
      }
      attend(in, key_head * in.head_size, block, out);
    }
    head = end;
  }
}

void attend_f32_cache(const CacheAttentionInput& in, Range heads, float* memory, View<float, 2> out) {
  attend_cache(in, heads, memory, out);
}
void attend_bf16_cache(const Bf16CacheAttentionInput& in, Range heads, float* memory, View<float, 2> out) {
  attend_cache(in, heads, memory, out);
}
void attend_int8_cache(const Int8CacheAttentionInput& in, Range heads, float* memory, View<float, 2> out) {
  attend_cache(in, heads, memory, out);
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(attend_f32_cache);
HWY_EXPORT(attend_bf16_cache);
HWY_EXPORT(attend_int8_cache);

size_t cache_attention_scratch_size(size_t rows) {
  constexpr size_t kAtOnce = 16;  // queries that lie side by side
  static_assert(kAtOnce >= kBlockQueries);
  return kAtOnce * rows;
}

namespace {

template <class T>
void check(const CacheAttention<T>& input, [[maybe_unused]] Range heads, std::span<float> scratch,
           [[maybe_unused]] View<float, 2> out) {
  const size_t n = input.q.extent(0), rows = input.keys.extent(0), shared = input.prefix_keys.extent(0);
  SYRINX_CHECK(scratch.size() >= cache_attention_scratch_size(shared + rows), "scratch {} for {} rows", scratch.size(),
               shared + rows);
  SYRINX_CHECK((input.first_position >= shared && input.first_position + n - shared <= rows) ||
                   (shared == 0 && input.window > 0 && input.window + n - 1 <= rows),
               "{} queries from {} with a window of {} in a ring of {} after {}", n, input.first_position, input.window,
               rows, shared);
  SYRINX_CHECK(n <= 1 || (input.see_from == 0 && input.see_to >= input.first_position + n && input.log_sums == nullptr),
               "a part of the cache for {} positions", n);
  SYRINX_CHECK(shared == 0 || (input.window == 0 && input.prefix_values.extent(0) == shared),
               "a prefix of {} keys, {} values, window {}", shared, input.prefix_values.extent(0), input.window);
  SYRINX_DCHECK(input.key_heads > 0 && input.heads % input.key_heads == 0 && heads.end <= input.heads &&
                    input.values.extent(0) == rows && out.extent(0) == n,
                "{} query heads on {}", input.heads, input.key_heads);
}

}  // namespace

void cache_attention(const CacheAttentionInput& input, Range heads, std::span<float> scratch, View<float, 2> out) {
  check(input, heads, scratch, out);
  if (input.q.extent(0) > 0) HWY_DYNAMIC_DISPATCH(attend_f32_cache)(input, heads, scratch.data(), out);
}

void cache_attention(const Bf16CacheAttentionInput& input, Range heads, std::span<float> scratch, View<float, 2> out) {
  check(input, heads, scratch, out);
  if (input.q.extent(0) > 0) HWY_DYNAMIC_DISPATCH(attend_bf16_cache)(input, heads, scratch.data(), out);
}

void cache_attention(const Int8CacheAttentionInput& input, Range heads, std::span<float> scratch, View<float, 2> out) {
  check(input, heads, scratch, out);
  SYRINX_CHECK(input.key_scales.extent(0) == input.keys.extent(0) &&
                   input.value_scales.extent(0) == input.keys.extent(0) &&
                   input.prefix_key_scales.extent(0) == input.prefix_keys.extent(0) &&
                   input.prefix_value_scales.extent(0) == input.prefix_keys.extent(0),
               "scales of {} keys, {} values for {} rows", input.key_scales.extent(0), input.value_scales.extent(0),
               input.keys.extent(0));
  if (input.q.extent(0) > 0) HWY_DYNAMIC_DISPATCH(attend_int8_cache)(input, heads, scratch.data(), out);
}

void merge_attention(View<const float, 2> parts, const float* log_sums, size_t stride, float* out) {
  const size_t count = parts.extent(0), width = parts.extent(1);
  float most = log_sums[0];
  for (size_t p = 1; p < count; ++p) most = std::max(most, log_sums[p * stride]);
  float total = 0;
  for (size_t p = 0; p < count; ++p) total += std::exp(log_sums[p * stride] - most);
  for (size_t p = 0; p < count; ++p) {
    const float weight = std::exp(log_sums[p * stride] - most) / total;
    const float* const part = parts.row(p);
    for (size_t i = 0; i < width; ++i) out[i] = p == 0 ? weight * part[i] : out[i] + weight * part[i];
  }
}

}  // namespace syrinx::kernels
#endif  // HWY_ONCE
