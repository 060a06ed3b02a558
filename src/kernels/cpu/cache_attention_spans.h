// Internal: which positions a query of cache_attention.h sees, and where their rows lie.
#pragma once

#include <algorithm>
#include <array>
#include <type_traits>

#include "kernels/cache_attention.h"

namespace syrinx::kernels {

// Positions [begin, end) in the order of time; in the ring they are one or two runs of rows.
struct Span {
  size_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
};

// Whether rows have scales.
template <class T>
inline constexpr bool kScaled = std::is_same_v<T, int8_t>;

template <class T>
Span visible(const CacheAttention<T>& in, size_t query) {
  const size_t position = in.first_position + query;
  const size_t begin = in.window == 0 || position < in.window ? 0 : position + 1 - in.window;
  return {std::max(begin, in.see_from), std::min(position + 1, in.see_to)};
}

// Consecutive rows, of the prefix or of the ring, that hold part of a span; `at` counts the span's positions before.
template <class T>
struct Run {
  const T* first = nullptr;  // row, column 0
  size_t rows = 0, at = 0;
};

template <class T>
std::array<Run<T>, 3> runs_of(Span span, View<const T, 2> prefix, View<const T, 2> ring) {
  const size_t shared = prefix.extent(0), ring_rows = ring.extent(0);
  const Span before{std::min(span.begin, shared), std::min(span.end, shared)};
  const Span after{span.begin - before.begin, span.end - before.end};
  if (after.size() == 0) return {Run<T>{prefix.row(before.begin), before.size(), 0}};
  const size_t row = after.begin % ring_rows, first = std::min(after.size(), ring_rows - row);
  return {Run<T>{before.size() == 0 ? nullptr : prefix.row(before.begin), before.size(), 0},
          Run<T>{ring.row(row), first, before.size()},
          Run<T>{ring.row(0), after.size() - first, before.size() + first}};
}

// numbers[(p - span.begin) * width ...] of each position, `width` numbers, times the scale of its row.
inline void scale_positions(Span span, View<const float, 2> prefix, View<const float, 2> ring, size_t key_head,
                            float* numbers, size_t width) {
  for (const Run<float>& run : runs_of(span, prefix, ring)) {
    const size_t stride = ring.stride(0);
    for (size_t k = 0; k < run.rows; ++k) {
      const float scale = run.first[k * stride + key_head];
      for (size_t i = 0; i < width; ++i) numbers[(run.at + k) * width + i] *= scale;
    }
  }
}

}  // namespace syrinx::kernels
