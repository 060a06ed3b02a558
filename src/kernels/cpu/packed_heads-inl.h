// Internal, once per Highway target: keys and values of a head as panels, rows for their products, exponentials.
#if defined(SYRINX_KERNELS_CPU_PACKED_HEADS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYRINX_KERNELS_CPU_PACKED_HEADS_INL_H_
#undef SYRINX_KERNELS_CPU_PACKED_HEADS_INL_H_
#else
#define SYRINX_KERNELS_CPU_PACKED_HEADS_INL_H_
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "kernels/cpu/bf16-inl.h"
#include "kernels/cpu/narrow_block-inl.h"
#include "kernels/cpu/packed_heads.h"
#include "kernels/dispatch.h"
#include "tensor/view.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {

// How this target multiplies bf16: rows in two bytes, or as rounded f32.
struct PairProducts {
  void (*rows)(const NarrowBlock&, const uint16_t*, size_t, float*) = &bf16_rows;
  bool pairs = false;
};

inline PairProducts choose_pair_products() {
  PairProducts p;
#if HWY_TARGET == HWY_AVX3
  if (use_avx512_bf16()) p = {.rows = &bf16_rows_avx512, .pairs = true};
#endif
  return p;
}

// 2^x for x <= 0; below -126 it stays at 2^-126, which is lost beside the 1 that the greatest score gives.  What is not
// a number stays so: a maximum may swallow it, and integers added to its bits may change it.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE V PowerOfTwo(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V bounded = hn::Max(x, hn::Set(d, -126.0f));
  // Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the lower bits.
  const V magic = hn::Set(d, 12582912.0f), shifted = hn::Add(bounded, magic);
  const V r = hn::Sub(bounded, hn::Sub(shifted, magic));
  V p = hn::MulAdd(hn::Set(d, 9.570102e-03f), r, hn::Set(d, 5.591786e-02f));
  p = hn::MulAdd(p, r, hn::Set(d, 2.4024744e-01f));
  p = hn::MulAdd(p, r, hn::Set(d, 6.931218e-01f));
  p = hn::MulAdd(p, r, hn::Set(d, 9.999993e-01f));
  const V y = hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
  return hn::IfThenElse(hn::Eq(x, x), y, x);
}

// A row of floats in the form that the products read; both have room for a multiple of 32.
inline void store_row(const PairProducts& products, const float* from, size_t count, std::byte* to) {
#if HWY_TARGET == HWY_AVX3
  if (products.pairs) return round_to_bf16_avx512(from, count, reinterpret_cast<uint16_t*>(to));
#endif
  static_cast<void>(products);
  const F32 d;
  const hn::RebindToUnsigned<F32> du;
  for (size_t k = 0; k < count; k += hn::Lanes(d)) {
    const auto bits = hn::And(RoundedBits(d, hn::LoadU(d, from + k)), hn::Set(du, 0xFFFF0000u));
    hn::StoreU(hn::BitCast(d, bits), d, reinterpret_cast<float*>(to) + k);
  }
}

// Keys: a pair of depths of each of 32 keys side by side.
inline void pack_keys(View<const float, 2> k, size_t at, const HeadShape& shape, uint16_t* to) {
  const F32 d;
  const size_t width = k.extent(1), lanes = hn::Lanes(d);
  HWY_ALIGN uint16_t pairs[hn::MaxLanes(d)];
  for (size_t j = 0; j < k.extent(0); ++j) {
    const float* const from = k.row(j);
    uint16_t* const panel = to + (at + j) / kPanelColumns * shape.depth * kPanelColumns + (at + j) % kPanelColumns * 2;
    for (size_t t = 0; t < shape.depth; t += lanes) {
      const size_t known = std::min(lanes, width - std::min(width, t)), here = std::min(lanes, shape.depth - t);
      StoreBf16(d, known == lanes ? hn::LoadU(d, from + t) : load_n(d, from + t, known), pairs);
      for (size_t i = 0; i < here; ++i) panel[(t + i) / 2 * 2 * kPanelColumns + (t + i) % 2] = pairs[i];
    }
  }
}

// The same in f32: the numbers of 32 keys side by side.
inline void pack_keys(View<const float, 2> k, size_t at, const HeadShape& shape, float* to) {
  const size_t width = k.extent(1);
  for (size_t j = 0; j < k.extent(0); ++j) {
    const float* const from = k.row(j);
    float* const panel = to + (at + j) / kPanelColumns * shape.depth * kPanelColumns + (at + j) % kPanelColumns;
    for (size_t t = 0; t < width; ++t) panel[t * kPanelColumns] = from[t];
    for (size_t t = width; t < shape.depth; ++t) panel[t * kPanelColumns] = 0.0f;
  }
}

// Values: a pair of keys of each of 32 columns side by side, the first in the lower half of a word.  Behind the last
// key stand zeros.
inline void pack_values(View<const float, 2> v, size_t at, const HeadShape& shape, uint16_t* to) {
  const F32 d;
  const hn::RebindToUnsigned<F32> du;
  const size_t width = v.extent(1), lanes = hn::Lanes(d);
  const auto load = [&](const float* row, size_t c) HWY_ATTR {
    const size_t known = std::min(lanes, width - std::min(width, c));
    return known == lanes ? hn::LoadU(d, row + c) : load_n(d, row + c, known);
  };
  for (size_t j = 0; j < v.extent(0); j += 2) {
    for (size_t c = 0; c < shape.padded_width; c += lanes) {
      const auto low = hn::ShiftRight<16>(RoundedBits(d, load(v.row(j), c)));
      auto high = hn::Zero(du);
      if (j + 1 < v.extent(0)) high = hn::And(RoundedBits(d, load(v.row(j + 1), c)), hn::Set(du, 0xFFFF0000u));
      uint16_t* const pair = to + c / kPanelColumns * kPanelColumns * shape.padded_keys + (at + j) * kPanelColumns;
      hn::StoreU(hn::Or(low, high), du, reinterpret_cast<uint32_t*>(pair) + c % kPanelColumns);
    }
  }
}

// The same in f32: 32 columns of a key side by side.
inline void pack_values(View<const float, 2> v, size_t at, const HeadShape& shape, float* to) {
  const size_t width = v.extent(1);
  for (size_t c = 0; c < shape.padded_width; c += kPanelColumns) {
    const size_t known = std::min(kPanelColumns, width - std::min(width, c));
    float* panel = to + c * shape.padded_keys + at * kPanelColumns;
    for (size_t j = 0; j < v.extent(0); ++j, panel += kPanelColumns)
      std::fill_n(std::copy_n(v.row(j) + c, known, panel), kPanelColumns - known, 0.0f);
  }
}

// Rows of 32 products with values, each divided by the sum of its weights, into the columns of `out` from `column` on.
inline void store_divided(float* products, const float* sums, size_t rows, size_t column, size_t first,
                          View<float, 2> out) {
  const F32 d;
  const size_t count = std::min(kPanelColumns, out.extent(1) - column);
  for (size_t r = 0; r < rows; ++r) {
    const auto inverse = hn::Set(d, 1.0f / sums[r]);
    float* const from = products + r * kPanelColumns;
    for (size_t n = 0; n < kPanelColumns; n += hn::Lanes(d))
      hn::StoreU(hn::Mul(hn::LoadU(d, from + n), inverse), d, from + n);
    std::copy_n(from, count, out.row(first + r) + column);
  }
}

// Padding in place of keys: zeros in the last panel of keys, and behind the last pair of values.
template <class T>
void pack_nothing(size_t keys, const HeadShape& shape, T* to) {
  constexpr size_t kTogether = 4 / sizeof(T);  // depths of a key that lie side by side
  for (size_t j = keys; j < shape.padded_keys; ++j) {
    T* const last = to + (shape.padded_keys - kPanelColumns) * shape.depth + j % kPanelColumns * kTogether;
    for (size_t t = 0; t < shape.depth; t += kTogether) std::fill_n(last + t * kPanelColumns, kTogether, T{});
  }
  for (size_t c = 0; c < shape.padded_width; c += kPanelColumns) {
    T* const panel = to + shape.key_numbers() + c * shape.padded_keys;
    std::fill(panel + round_up(keys, kTogether) * kPanelColumns, panel + shape.padded_keys * kPanelColumns, T{});
  }
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
