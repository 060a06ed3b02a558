// Included once per target: attention of many queries over a cache.  Sixteen queries of one key head lie side by side
// in vectors, so that scores, their maximum, exponentials and sums need no step across lanes, and keys and values are
// broadcast.  A query's lane and company change none of its bits.
#if defined(SYRINX_KERNELS_CPU_CACHE_ATTENTION_WIDE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYRINX_KERNELS_CPU_CACHE_ATTENTION_WIDE_INL_H_
#undef SYRINX_KERNELS_CPU_CACHE_ATTENTION_WIDE_INL_H_
#else
#define SYRINX_KERNELS_CPU_CACHE_ATTENTION_WIDE_INL_H_
#endif

#include <hwy/cache_control.h>

#include <cstddef>
#include <limits>

#include "hwy/highway.h"
#include "kernels/cpu/bf16-inl.h"
#include "kernels/cpu/cache_attention_spans.h"
#include "kernels/cpu/gemm_block.h"
#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {
namespace wide {

namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using VF = hn::Vec<F32>;

inline constexpr size_t kQueries = 16;
inline constexpr size_t kVectors = kQueries / hn::MaxLanes(F32());  // of a row of queries
// A tile: keys whose scores, and vectors of columns whose sums, fit the registers.
#if HWY_TARGET == HWY_AVX3
inline constexpr size_t kKeys = 12, kWidth = 4;
#elif HWY_TARGET == HWY_NEON
inline constexpr size_t kKeys = 5, kWidth = 4;
#else
inline constexpr size_t kKeys = kVectors == 2 ? 5 : 2, kWidth = 2;
#endif
inline constexpr size_t kPiece = 64;  // channels of a head at a time
inline constexpr size_t kLineBytes = 64;

struct Block {
  size_t rows = 0;                           // queries, the others are idle lanes
  Span span;                                 // of all of them together
  size_t query[kQueries], column[kQueries];  // row of q, first column of the query head
  alignas(64) float begin[kQueries];         // what each sees, counted from span.begin
  alignas(64) float end[kQueries];
  size_t all_begin = 0, all_end = 0;  // what all of them see
  alignas(64) float inverse_sum[kQueries];
};

// scores[k][query] = or += keys[k] . queries over `count` channels; queries are [channel][query].  Meanwhile the lines
// from `ahead` on are fetched.
template <size_t kCount>
HWY_INLINE void score_keys(const float* HWY_RESTRICT keys, size_t stride, size_t count,
                           const float* HWY_RESTRICT queries, bool first, const std::byte* ahead, size_t lines,
                           float* HWY_RESTRICT scores) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  VF sums[kCount][kVectors], x[kVectors];
  SYRINX_UNROLL
  for (size_t k = 0; k < kCount; ++k) {
    SYRINX_UNROLL
    for (size_t v = 0; v < kVectors; ++v)
      sums[k][v] = first ? hn::Zero(d) : hn::LoadU(d, scores + k * kQueries + v * lanes);
  }
  for (size_t c = 0; c < count; ++c) {
    if (c < lines) hwy::Prefetch(ahead + c * kLineBytes);
    SYRINX_UNROLL
    for (size_t v = 0; v < kVectors; ++v) x[v] = hn::LoadU(d, queries + c * kQueries + v * lanes);
    SYRINX_UNROLL
    for (size_t k = 0; k < kCount; ++k) {
      const VF key = hn::Set(d, keys[k * stride + c]);
      SYRINX_UNROLL
      for (size_t v = 0; v < kVectors; ++v) sums[k][v] = hn::MulAdd(key, x[v], sums[k][v]);
    }
  }
  SYRINX_UNROLL
  for (size_t k = 0; k < kCount; ++k) {
    SYRINX_UNROLL
    for (size_t v = 0; v < kVectors; ++v) hn::StoreU(sums[k][v], d, scores + k * kQueries + v * lanes);
  }
}

// Rows of at most kPiece channels as floats: where they lie, or widened in `room`.
inline View<const float, 2> as_f32(View<const float, 2> rows, float*) { return rows; }
template <class T>
inline View<const float, 2> as_f32(View<const T, 2> rows, float* room) {
  const F32 d;
  const size_t lanes = hn::Lanes(d), count = rows.extent(1);
  for (size_t n = 0; n < rows.extent(0); ++n) {
    const T* const from = rows.row(n);
    float* const to = room + n * kPiece;
    size_t c = 0;
    for (; c + lanes <= count; c += lanes) hn::StoreU(load_as_f32(d, from + c), d, to + c);
    if (c < count) store_n(load_n_as_f32(d, from + c, count - c), d, to + c, count - c);
  }
  return {room, {rows.extent(0), count}, {kPiece, 1}};
}

template <class T>
HWY_NOINLINE void score(const CacheAttention<T>& in, size_t key_column, const Block& block, float* scores) {
  alignas(64) float queries[kPiece * kQueries] = {}, widened[kKeys * kPiece];
  for (size_t c0 = 0; c0 < in.head_size; c0 += kPiece) {
    const size_t count = std::min(kPiece, in.head_size - c0);
    for (size_t r = 0; r < block.rows; ++r) {
      const float* const q = in.q.row(block.query[r]) + block.column[r] + c0;
      for (size_t c = 0; c < count; ++c) queries[c * kQueries + r] = q[c] * in.scale;
    }
    for (const Run<T>& run : runs_of(block.span, in.prefix_keys, in.keys)) {
      if (run.rows == 0) continue;
      const size_t stride = in.keys.stride(0);
      const T* key = run.first + key_column + c0;
      float* to = scores + run.at * kQueries;
      size_t k = 0;
      for (; k + kKeys <= run.rows; k += kKeys, key += kKeys * stride, to += kKeys * kQueries) {
        const View<const float, 2> keys = as_f32(View<const T, 2>(key, {kKeys, count}, {stride, 1}), widened);
        // The next rows, where a head's follow each other without a gap.
        const size_t left = std::min(kKeys, run.rows - k - kKeys);
        score_keys<kKeys>(keys.data(), keys.stride(0), count, queries, c0 == 0,
                          reinterpret_cast<const std::byte*>(key + kKeys * stride),
                          left * stride * sizeof(T) / kLineBytes, to);
      }
      for (; k < run.rows; ++k, key += stride, to += kQueries) {
        const View<const float, 2> one = as_f32(View<const T, 2>(key, {1, count}, {stride, 1}), widened);
        score_keys<1>(one.data(), one.stride(0), count, queries, c0 == 0, nullptr, 0, to);
      }
    }
  }
}

// Scores to weights, not yet divided by their sum; what a query does not see weighs nothing.
HWY_NOINLINE void weigh(Block& block, float* scores) {
  const F32 d;
  for (size_t v = 0; v < kQueries; v += hn::Lanes(d)) {
    const VF begin = hn::LoadU(d, block.begin + v), end = hn::LoadU(d, block.end + v);
    const VF nothing = hn::Set(d, -std::numeric_limits<float>::infinity());
    VF most = nothing;
    for (size_t k = 0; k < block.span.size(); ++k) {
      float* const at = scores + k * kQueries + v;
      VF s = hn::LoadU(d, at);
      if (k < block.all_begin || k >= block.all_end) {
        const VF position = hn::Set(d, static_cast<float>(k));
        s = hn::IfThenElse(hn::And(hn::Ge(position, begin), hn::Lt(position, end)), s, nothing);
        hn::StoreU(s, d, at);
      }
      most = hn::Max(most, s);
    }
    VF sum = hn::Zero(d);
    for (size_t k = 0; k < block.span.size(); ++k) {
      float* const at = scores + k * kQueries + v;
      const VF e = Exp(d, hn::Sub(hn::LoadU(d, at), most));
      sum = hn::Add(sum, e);
      hn::StoreU(e, d, at);
    }
    hn::StoreU(hn::Div(hn::Set(d, 1.0f), sum), d, block.inverse_sum + v);
  }
}

// Columns [c, c + kCount lanes) of the weighted sums of kRows queries from `row`; `rest` is nonzero for the columns
// behind the last whole vector.
template <size_t kRows, size_t kCount, class T>
HWY_INLINE void sum_values(const CacheAttention<T>& in, size_t value_column, const Block& block, const float* weights,
                           size_t row, size_t c, size_t rest, View<float, 2> out) {
  const F32 d;
  const size_t lanes = hn::Lanes(d), stride = in.values.stride(0);
  VF sums[kRows][kCount], x[kCount];
  SYRINX_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    SYRINX_UNROLL
    for (size_t v = 0; v < kCount; ++v) sums[r][v] = hn::Zero(d);
  }
  for (const Run<T>& run : runs_of(block.span, in.prefix_values, in.values)) {
    if (run.rows == 0) continue;
    const T* value = run.first + value_column + c;
    const float* weight = weights + run.at * kQueries + row;
    for (size_t k = 0; k < run.rows; ++k, value += stride, weight += kQueries) {
      SYRINX_UNROLL
      for (size_t v = 0; v < kCount; ++v)
        x[v] = rest > 0 ? load_n_as_f32(d, value, rest) : load_as_f32(d, value + v * lanes);
      SYRINX_UNROLL
      for (size_t r = 0; r < kRows; ++r) {
        const VF w = hn::Set(d, weight[r]);
        SYRINX_UNROLL
        for (size_t v = 0; v < kCount; ++v) sums[r][v] = hn::MulAdd(w, x[v], sums[r][v]);
      }
    }
  }
  for (size_t r = 0; r < kRows && row + r < block.rows; ++r) {
    float* const to = out.row(block.query[row + r]) + block.column[row + r] + c;
    const VF factor = hn::Set(d, block.inverse_sum[row + r]);
    for (size_t v = 0; v < kCount; ++v) {
      const VF value = hn::Mul(sums[r][v], factor);
      if (rest > 0) {
        store_n(value, d, to, rest);
      } else {
        hn::StoreU(value, d, to + v * lanes);
      }
    }
  }
}

template <class T>
HWY_NOINLINE void sum(const CacheAttention<T>& in, size_t value_column, const Block& block, const float* weights,
                      View<float, 2> out) {
  constexpr size_t kRows = 4;
  const size_t lanes = hn::Lanes(F32());
  for (size_t row = 0; row < block.rows; row += kRows) {
    size_t c = 0;
    for (; c + kWidth * lanes <= in.head_size; c += kWidth * lanes)
      sum_values<kRows, kWidth>(in, value_column, block, weights, row, c, 0, out);
    for (; c + lanes <= in.head_size; c += lanes)
      sum_values<kRows, 1>(in, value_column, block, weights, row, c, 0, out);
    if (c < in.head_size) sum_values<kRows, 1>(in, value_column, block, weights, row, c, in.head_size - c, out);
  }
}

// Query heads [first_head, end_head), which share one key head, of all queries.
template <class T>
void attend(const CacheAttention<T>& in, size_t first_head, size_t end_head, float* scores, View<float, 2> out) {
  const size_t here = end_head - first_head, count = in.q.extent(0) * here;
  const size_t column = first_head * in.key_heads / in.heads * in.head_size;
  for (size_t first = 0; first < count; first += kQueries) {
    Block block;
    block.rows = std::min(kQueries, count - first);
    block.span = {visible(in, first / here).begin, visible(in, (first + block.rows - 1) / here).end};
    for (size_t r = 0; r < kQueries; ++r) {
      const size_t i = first + std::min(r, block.rows - 1);  // idle lanes see what the last query sees
      block.query[r] = i / here;
      block.column[r] = (first_head + i % here) * in.head_size;
      const Span own = visible(in, block.query[r]);
      block.begin[r] = static_cast<float>(own.begin - block.span.begin);
      block.end[r] = static_cast<float>(own.end - block.span.begin);
    }
    block.all_begin = visible(in, block.query[kQueries - 1]).begin - block.span.begin;
    block.all_end = visible(in, block.query[0]).end - block.span.begin;
    const size_t key_head = column / in.head_size;
    score(in, column, block, scores);
    if constexpr (kScaled<T>)
      scale_positions(block.span, in.prefix_key_scales, in.key_scales, key_head, scores, kQueries);
    weigh(block, scores);
    if constexpr (kScaled<T>)
      scale_positions(block.span, in.prefix_value_scales, in.value_scales, key_head, scores, kQueries);
    sum(in, column, block, scores, out);
  }
}

}  // namespace wide
}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SYRINX_KERNELS_CPU_CACHE_ATTENTION_WIDE_INL_H_
