#include "kernels/depthwise_rows.h"

#include <algorithm>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/depthwise_rows.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/tail-inl.h"

#ifndef SYRINX_KERNELS_CPU_DEPTHWISE_ROWS_ONCE_
#define SYRINX_KERNELS_CPU_DEPTHWISE_ROWS_ONCE_
namespace syrinx::kernels {
namespace {

// The taps [begin, end) of an output row whose first tap reads input row `first` (which may be before 0).
struct Taps {
  size_t begin, end;
};
Taps inside(ptrdiff_t first, size_t taps, size_t rows) {
  const auto clamp = [&](ptrdiff_t tap) {
    return static_cast<size_t>(std::clamp<ptrdiff_t>(tap, 0, static_cast<ptrdiff_t>(taps)));
  };
  const size_t begin = clamp(-first);
  return {begin, std::max(begin, clamp(static_cast<ptrdiff_t>(rows) - first))};
}

}  // namespace
}  // namespace syrinx::kernels
#endif  // SYRINX_KERNELS_CPU_DEPTHWISE_ROWS_ONCE_

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {

template <class D, class V>
HWY_INLINE V activated(D d, V v, RowsActivation activation) {
  if (activation == RowsActivation::kRelu) return hn::Max(v, hn::Zero(d));
  if (activation == RowsActivation::kSilu) return hn::Mul(v, Sigmoid(d, v));
  return v;
}

void rows_between(const DepthwiseRows& conv, View<const float, 2> x, size_t begin, size_t end, View<float, 2> out) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d), n = out.extent(1);
  for (size_t t = begin; t < end; ++t) {
    const ptrdiff_t first = static_cast<ptrdiff_t>(t) - static_cast<ptrdiff_t>(conv.pad);
    const Taps taps = inside(first, conv.taps, x.extent(0));
    const auto sum = [&](size_t i, const auto& load) HWY_ATTR {
      auto s = conv.bias != nullptr ? load(conv.bias + i) : hn::Zero(d);
      for (size_t j = taps.begin; j < taps.end; ++j) {
        const float* const row = x.data() + static_cast<size_t>(first + static_cast<ptrdiff_t>(j)) * x.stride(0);
        s = hn::MulAdd(load(conv.weight + j * n + i), load(row + i), s);
      }
      return activated(d, s, conv.activation);
    };
    float* const y = out.row(t);
    size_t i = 0;
    for (; i + lanes <= n; i += lanes)
      hn::StoreU(sum(i, [d](const float* p) HWY_ATTR { return hn::LoadU(d, p); }), d, y + i);
    if (const size_t rest = n - i; rest > 0)
      store_n(sum(i, [d, rest](const float* p) HWY_ATTR { return load_n(d, p, rest); }), d, y + i, rest);
  }
}

// One output position: rows and columns of its taps that lie inside; channels along the vector.
template <bool kOneInput>
HWY_INLINE void halving_position(const HalvingConv& conv, const View<const float, 2>& x, ptrdiff_t row, Taps rows,
                                 ptrdiff_t column, Taps columns, float* y) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d), n = conv.channels;
  const auto sum = [&](size_t i, const auto& load) HWY_ATTR {
    auto s = load(conv.bias + i);
    for (size_t j = rows.begin; j < rows.end; ++j) {
      const float* const from = x.data() + static_cast<size_t>(row + static_cast<ptrdiff_t>(j)) * x.stride(0);
      for (size_t k = columns.begin; k < columns.end; ++k) {
        const float* const at = from + static_cast<size_t>(column + static_cast<ptrdiff_t>(k)) * (kOneInput ? 1 : n);
        const auto weight = load(conv.weight + (3 * j + k) * n + i);
        s = kOneInput ? hn::MulAdd(weight, hn::Set(d, *at), s) : hn::MulAdd(weight, load(at + i), s);
      }
    }
    return conv.relu ? hn::Max(s, hn::Zero(d)) : s;
  };
  size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(sum(i, [d](const float* p) HWY_ATTR { return hn::LoadU(d, p); }), d, y + i);
  if (const size_t rest = n - i; rest > 0)
    store_n(sum(i, [d, rest](const float* p) HWY_ATTR { return load_n(d, p, rest); }), d, y + i, rest);
}

void halving_between(const HalvingConv& conv, View<const float, 2> x, size_t begin, size_t end, View<float, 2> out) {
  for (size_t t = begin; t < end; ++t) {
    const ptrdiff_t row = static_cast<ptrdiff_t>(2 * t) - static_cast<ptrdiff_t>(conv.pad);
    const Taps rows = inside(row, 3, x.extent(0));
    for (size_t f = 0; f < conv.columns; ++f) {
      const ptrdiff_t column = static_cast<ptrdiff_t>(2 * f) - static_cast<ptrdiff_t>(conv.pad_columns);
      const Taps columns = inside(column, 3, conv.input_columns);
      float* const y = out.row(t) + f * conv.channels;
      if (conv.input_channels == 1) {
        halving_position<true>(conv, x, row, rows, column, columns, y);
      } else {
        halving_position<false>(conv, x, row, rows, column, columns, y);
      }
    }
  }
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(rows_between);
HWY_EXPORT(halving_between);

void depthwise_rows(const DepthwiseRows& conv, View<const float, 2> x, size_t begin, size_t end, View<float, 2> out) {
  SYRINX_DCHECK(begin <= end && end <= out.extent(0) && out.extent(1) == x.extent(1), "rows {} to {} of {}", begin, end,
                out.extent(0));
  HWY_DYNAMIC_DISPATCH(rows_between)(conv, x, begin, end, out);
}

void halving_conv(const HalvingConv& conv, View<const float, 2> x, size_t begin, size_t end, View<float, 2> out) {
  SYRINX_DCHECK(begin <= end && end <= out.extent(0) && out.extent(1) == conv.columns * conv.channels &&
                    x.extent(1) == conv.input_columns * conv.input_channels &&
                    (conv.input_channels == 1 || conv.input_channels == conv.channels),
                "rows {} to {}, {} columns of {} channels", begin, end, conv.columns, conv.channels);
  HWY_DYNAMIC_DISPATCH(halving_between)(conv, x, begin, end, out);
}

}  // namespace syrinx::kernels
#endif  // HWY_ONCE
