// Included once per Highway target: the two ends of a convolution.  load_rows() normalises, activates and quantises
// input rows; store_block() scales, adds, stores a block of sums and takes its statistics.
#if defined(SYRINX_KERNELS_CPU_CONV_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYRINX_KERNELS_CPU_CONV_ROWS_INL_H_
#undef SYRINX_KERNELS_CPU_CONV_ROWS_INL_H_
#else
#define SYRINX_KERNELS_CPU_CONV_ROWS_INL_H_
#endif

#include <cmath>

#include "hwy/highway.h"
#include "kernels/conv.h"
#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using F16 = hn::Rebind<hwy::float16_t, F32>;
using I32 = hn::RebindToSigned<F32>;
using U8 = hn::Rebind<uint8_t, F32>;
using VF = hn::Vec<F32>;

template <Storage kStorage>
HWY_INLINE VF load_stored(const void* data, size_t index) {
  if constexpr (kStorage == Storage::kF32) return hn::LoadU(F32(), static_cast<const float*>(data) + index);
  return hn::PromoteTo(F32(), hn::LoadU(F16(), static_cast<const hwy::float16_t*>(data) + index));
}

template <Storage kStorage>
HWY_INLINE void store_stored(VF v, void* data, size_t index) {
  if constexpr (kStorage == Storage::kF32) {
    hn::StoreU(v, F32(), static_cast<float*>(data) + index);
  } else {
    hn::StoreU(hn::DemoteTo(F16(), v), F16(), static_cast<hwy::float16_t*>(data) + index);
  }
}

// v + sin(alpha v)^2 / alpha.  sin(pi r)^2 has period 1 in r = alpha v / pi, so after the nearest integer is taken off,
// an even polynomial in r on [-1/2, 1/2] is enough: least-maximum fit in u = r^2, error of sin^2 below 4e-7 in f32.
HWY_INLINE VF snake(VF v, VF alpha_over_pi, VF inverse_alpha) {
  const F32 d;
  const VF magic = hn::Set(d, 12582912.0f);  // 1.5 * 2^23: adding and subtracting it rounds to the nearest integer
  const VF scaled = hn::Mul(v, alpha_over_pi);
  const VF r = hn::Sub(scaled, hn::Sub(hn::Add(scaled, magic), magic));
  const VF u = hn::Mul(r, r);
  VF p = hn::MulAdd(u, hn::Set(d, -3.3570764f), hn::Set(d, 13.050401f));
  p = hn::MulAdd(p, u, hn::Set(d, -30.101532f));
  p = hn::MulAdd(p, u, hn::Set(d, 42.727203f));
  p = hn::MulAdd(p, u, hn::Set(d, -32.469673f));
  p = hn::MulAdd(p, u, hn::Set(d, 9.869604f));
  return hn::MulAdd(hn::Mul(u, p), inverse_alpha, v);
}

// The input transform at channel c of an already loaded value.
template <Activation kActivation>
HWY_INLINE VF transform(const ConvInput& in, VF v, size_t c) {
  const F32 d;
  if (in.scale != nullptr) v = hn::MulAdd(v, hn::LoadU(d, in.scale + c), hn::LoadU(d, in.shift + c));
  if constexpr (kActivation == Activation::kLeakyRelu) {
    v = hn::IfThenElse(hn::Lt(v, hn::Zero(d)), hn::Mul(v, hn::Set(d, in.slope)), v);
  } else if constexpr (kActivation == Activation::kSnake) {
    v = snake(v, hn::LoadU(d, in.alpha_over_pi + c), hn::LoadU(d, in.inverse_alpha + c));
  } else if constexpr (kActivation == Activation::kElu) {
    v = Elu(d, v);
  }
  return v;
}

// Quantisation of one tile: real = scale * (q - zero).
struct Quantiser {
  float scale = 1.0f;
  int32_t zero = 0;
};

// The exact range of the activated input rows [first, last], from the ends of each channel's range.
template <Activation kActivation>
HWY_NOINLINE Quantiser tile_quantiser(const ConvInput& in, size_t first, size_t last, size_t channels) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  const TileStats& range = *in.range;
  const size_t from = first / range.tile_rows(), to = last / range.tile_rows();
  VF low = hn::Zero(d), high = hn::Zero(d);  // padding rows are zero
  for (size_t c = 0; c < channels; c += lanes) {
    VF least = hn::LoadU(d, range.least(from) + c), greatest = hn::LoadU(d, range.greatest(from) + c);
    for (size_t t = from + 1; t <= to; ++t) {
      least = hn::Min(least, hn::LoadU(d, range.least(t) + c));
      greatest = hn::Max(greatest, hn::LoadU(d, range.greatest(t) + c));
    }
    const VF a = transform<kActivation>(in, least, c), b = transform<kActivation>(in, greatest, c);
    low = hn::Min(low, hn::Min(a, b));
    high = hn::Max(high, hn::Max(a, b));
  }
  const float lo = hn::GetLane(hn::MinOfLanes(d, low)), hi = hn::GetLane(hn::MaxOfLanes(d, high));
  Quantiser q;
  if (hi - lo > 1e-30f) {
    q.scale = (hi - lo) / 255.0f;
    const float zero = -lo / q.scale;  // in [0, 255], but for values that are not finite
    q.zero = zero >= 0.0f && zero <= 255.0f ? static_cast<int32_t>(std::lrint(zero)) : 0;
  }
  return q;
}

HWY_INLINE void store_quantised(VF v, VF inverse, VF zero, uint8_t* to) {
  const U8 d8;
  hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(hn::MulAdd(v, inverse, zero))), d8, to);
}

// `count` input rows from `first` (which may lie outside the input) into [count][depth] bytes with one scale.
template <Storage kStorage, Activation kActivation>
HWY_NOINLINE void load_tile_u8(const ConvInput& in, ptrdiff_t first, size_t count, size_t depth, const Quantiser& q,
                               uint8_t* to) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  const VF inverse = hn::Set(d, 1.0f / q.scale), zero = hn::Set(d, static_cast<float>(q.zero));
  for (size_t i = 0; i < count; ++i, to += depth) {
    const ptrdiff_t row = first + static_cast<ptrdiff_t>(i);
    if (row < 0 || row >= static_cast<ptrdiff_t>(in.rows)) {
      std::memset(to, q.zero, depth);
      continue;
    }
    const size_t base = static_cast<size_t>(row) * in.stride;
    for (size_t c = 0; c < depth; c += lanes)
      store_quantised(transform<kActivation>(in, load_stored<kStorage>(in.data, base + c), c), inverse, zero, to + c);
  }
}

// The rest of each activation after its first byte, in units of 1 / 254 of its step; |rest| <= step / 2.
inline void load_rest_u8(const float* activated, const uint8_t* leading, size_t depth, float step, uint8_t* to) {
  const F32 d;
  const I32 di;
  const U8 d8;
  const VF inverse = hn::Set(d, 254.0f / step), zero = hn::Set(d, 128.0f), scale = hn::Set(d, step);
  for (size_t c = 0; c < depth; c += hn::Lanes(d)) {
    const auto q = hn::Sub(hn::PromoteTo(di, hn::LoadU(d8, leading + c)), hn::Set(di, 128));
    const VF rest = hn::NegMulAdd(hn::ConvertTo(d, q), scale, hn::LoadU(d, activated + c));
    store_quantised(rest, inverse, zero, to + c);
  }
}

// One tap: each row has its own symmetric scale and the zero point 128.  `rest`, where not null, gets a second byte.
template <Storage kStorage, Activation kActivation>
HWY_NOINLINE void load_rows_u8(const ConvInput& in, size_t first, size_t count, size_t depth, float* row_scale,
                               float* activated, uint8_t* to, uint8_t* rest = nullptr) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < count; ++i, to += depth) {
    const size_t base = (first + i) * in.stride;
    VF most = hn::Zero(d);
    for (size_t c = 0; c < depth; c += lanes) {
      const VF v = transform<kActivation>(in, load_stored<kStorage>(in.data, base + c), c);
      most = hn::Max(most, hn::Abs(v));
      hn::StoreU(v, d, activated + c);
    }
    const float greatest = hn::GetLane(hn::MaxOfLanes(d, most));
    row_scale[i] = greatest > 1e-30f ? greatest / 127.0f : 1.0f;
    const VF inverse = hn::Set(d, 1.0f / row_scale[i]), zero = hn::Set(d, 128.0f);
    for (size_t c = 0; c < depth; c += lanes) store_quantised(hn::LoadU(d, activated + c), inverse, zero, to + c);
    if (rest != nullptr) load_rest_u8(activated, to, depth, row_scale[i], rest + i * depth);
  }
}

template <Storage kStorage, Activation kActivation>
HWY_NOINLINE void load_tile_f32(const ConvInput& in, ptrdiff_t first, size_t count, size_t depth, size_t stride,
                                float* to) {
  const size_t lanes = hn::Lanes(F32());
  for (size_t i = 0; i < count; ++i, to += stride) {
    const ptrdiff_t row = first + static_cast<ptrdiff_t>(i);
    if (row < 0 || row >= static_cast<ptrdiff_t>(in.rows)) {
      std::memset(to, 0, depth * sizeof(float));
      continue;
    }
    const size_t base = static_cast<size_t>(row) * in.stride;
    for (size_t c = 0; c < depth; c += lanes)
      hn::StoreU(transform<kActivation>(in, load_stored<kStorage>(in.data, base + c), c), F32(), to + c);
  }
}

// Running statistics of one panel over a tile.  Deviations are taken from the tile's first row, which keeps the
// sum of squares accurate where the mean is large against the deviation.
struct PanelStats {
  float pivot[kPanelColumns], sum[kPanelColumns], squares[kPanelColumns], least[kPanelColumns], greatest[kPanelColumns];
};

// How the sums of a panel become values.
struct PanelScale {
  const float* bias = nullptr;           // [32]
  const float* scale = nullptr;          // int8: [32]
  const int32_t* column_term = nullptr;  // int8: [32], activation zero point x column sum
  const float* row_scale = nullptr;      // int8: per row of the tile
  const int32_t* row_term = nullptr;     // int8: weight zero point x sum of the row's bytes
  const int32_t* rest_sums = nullptr;  // int8, fine: the sums of the second bytes, whose step is 1 / 254 of the first's
  const int32_t* rest_term = nullptr;  // and what row_term is to them
};

template <bool kInt8>
HWY_INLINE VF sum_to_value(const PanelScale& p, const void* sums, size_t r, size_t row, size_t n) {
  const F32 d;
  const size_t at = r * kPanelColumns + n;
  if constexpr (!kInt8) {
    return hn::Add(hn::LoadU(d, static_cast<const float*>(sums) + at), hn::LoadU(d, p.bias + n));
  } else {
    const I32 di;
    const auto exact =
        hn::Sub(hn::Sub(hn::LoadU(di, static_cast<const int32_t*>(sums) + at), hn::Set(di, p.row_term[row])),
                hn::LoadU(di, p.column_term + n));
    VF sum = hn::ConvertTo(d, exact);
    if (p.rest_sums != nullptr) {
      const auto rest = hn::Sub(hn::Sub(hn::LoadU(di, p.rest_sums + at), hn::Set(di, p.rest_term[row])),
                                hn::LoadU(di, p.column_term + n));
      sum = hn::MulAdd(hn::ConvertTo(d, rest), hn::Set(d, 1.0f / 254.0f), sum);
    }
    const VF scaled = hn::Mul(sum, hn::Set(d, p.row_scale[row]));
    return hn::MulAdd(scaled, hn::LoadU(d, p.scale + n), hn::LoadU(d, p.bias + n));
  }
}

// Stores `rows` x 32 sums at output row `tile_row + row` of the tile that begins at output row `tile_row`.
template <Storage kStorage, bool kInt8>
HWY_NOINLINE void store_block(const PanelScale& p, const void* sums, size_t tile_row, size_t row, size_t rows,
                              size_t column, const ConvOutput& out, PanelStats* stats) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  const VF factor = hn::Set(d, out.factor);
  for (size_t n = 0; n < kPanelColumns; n += lanes) {
    VF pivot = hn::Zero(d), sum = pivot, squares = pivot, least = pivot, greatest = pivot;
    for (size_t r = 0; r < rows; ++r) {
      const size_t m = tile_row + row + r;
      VF v = sum_to_value<kInt8>(p, sums, r, row + r, n);
      if (out.residual != nullptr)
        v = hn::Add(v, load_stored<kStorage>(out.residual, m * out.residual_stride + column + n));
      if (out.addend != nullptr) v = hn::Add(v, load_stored<kStorage>(out.addend, m * out.addend_stride + column + n));
      v = hn::Mul(v, factor);
      store_stored<kStorage>(v, out.data, m * out.stride + column + n);
      if (stats == nullptr) continue;
      if (r == 0) {
        if (row == 0) {
          pivot = least = greatest = v;
          hn::StoreU(v, d, stats->pivot + n);
        } else {
          pivot = hn::LoadU(d, stats->pivot + n);
          sum = hn::LoadU(d, stats->sum + n);
          squares = hn::LoadU(d, stats->squares + n);
          least = hn::LoadU(d, stats->least + n);
          greatest = hn::LoadU(d, stats->greatest + n);
        }
      }
      const VF deviation = hn::Sub(v, pivot);
      sum = hn::Add(sum, deviation);
      squares = hn::MulAdd(deviation, deviation, squares);
      least = hn::Min(least, v);
      greatest = hn::Max(greatest, v);
    }
    if (stats == nullptr) continue;
    hn::StoreU(sum, d, stats->sum + n);
    hn::StoreU(squares, d, stats->squares + n);
    hn::StoreU(least, d, stats->least + n);
    hn::StoreU(greatest, d, stats->greatest + n);
  }
}

// Turns the running sums of `rows` rows into mean and squared deviations at `column` of a tile.
inline void finish_stats(const PanelStats& s, size_t rows, const TileStats& to, size_t tile, size_t column) {
  const float count = static_cast<float>(rows);
  for (size_t n = 0; n < kPanelColumns; ++n) {
    const float shift = s.sum[n] / count;
    const float squares = s.squares[n] - s.sum[n] * shift;
    to.mean(tile)[column + n] = s.pivot[n] + shift;
    to.squares(tile)[column + n] = squares > 0.0f ? squares : 0.0f;
    to.least(tile)[column + n] = s.least[n];
    to.greatest(tile)[column + n] = s.greatest[n];
  }
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
