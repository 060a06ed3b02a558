// Rounding to bf16, the upper half of an f32: to nearest, halves to even; a NaN stays one.  And vectors of floats from
// memory of either type.
// Included once per target; see Highway's rules for -inl.h files.
#if defined(SYRINX_KERNELS_CPU_BF16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYRINX_KERNELS_CPU_BF16_INL_H_
#undef SYRINX_KERNELS_CPU_BF16_INL_H_
#else
#define SYRINX_KERNELS_CPU_BF16_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "kernels/cpu/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Bits whose upper half is the bf16; the lower is what is left over.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE hn::VFromD<hn::RebindToUnsigned<D>> RoundedBits(D d, V v) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const V rounded = hn::BitCast(d, hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFF))));
  const V quiet = hn::BitCast(d, hn::Or(bits, hn::Set(du, 0x00400000)));
  return hn::BitCast(du, hn::IfThenElse(hn::IsNaN(v), quiet, rounded));
}

template <class D, class V = hn::VFromD<D>>
HWY_INLINE void StoreBf16(D d, V v, uint16_t* to) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::RebindToSigned<D> di;
  hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, hn::ShiftRight<16>(RoundedBits(d, v)))), d16, to);
}

// Two vectors side by side.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE void StoreBf16(D d, V first, V second, uint16_t* to) {
#if HWY_TARGET == HWY_SCALAR
  StoreBf16(d, first, to);
  StoreBf16(d, second, to + 1);
#else
  const hn::Repartition<uint16_t, D> d16;  // the upper half of each number is an odd lane
  const auto low = hn::BitCast(d16, RoundedBits(d, first)), high = hn::BitCast(d16, RoundedBits(d, second));
  hn::StoreU(hn::ConcatOdd(d16, high, low), d16, to);
#endif
}

// As many floats as D has lanes.
template <class D>
HWY_INLINE hn::VFromD<D> load_as_f32(D d, const float* HWY_RESTRICT from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::VFromD<D> load_as_f32(D d, const uint16_t* HWY_RESTRICT from) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<uint16_t, D> du16;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(du16, from))));
}

template <class D>
HWY_INLINE hn::VFromD<D> load_as_f32(D d, const int8_t* HWY_RESTRICT from) {
  const hn::Rebind<int32_t, D> di;
  const hn::Rebind<int8_t, D> di8;
  return hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(di8, from)));
}

// The first n lanes from memory, the others zero.
template <class D>
HWY_INLINE hn::VFromD<D> load_n_as_f32(D d, const float* HWY_RESTRICT from, size_t n) {
  return load_n(d, from, n);
}
template <class D>
HWY_INLINE hn::VFromD<D> load_n_as_f32(D d, const uint16_t* HWY_RESTRICT from, size_t n) {
  HWY_ALIGN uint16_t lanes[hn::MaxLanes(d)] = {};
  std::memcpy(lanes, from, n * sizeof(uint16_t));
  return load_as_f32(d, lanes);
}
template <class D>
HWY_INLINE hn::VFromD<D> load_n_as_f32(D d, const int8_t* HWY_RESTRICT from, size_t n) {
  HWY_ALIGN int8_t lanes[hn::MaxLanes(d)] = {};
  std::memcpy(lanes, from, n);
  return load_as_f32(d, lanes);
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
