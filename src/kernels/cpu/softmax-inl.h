// Softmax of one row on vectors, for the kernels of softmax and attention.
#if defined(SYRINX_KERNELS_CPU_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYRINX_KERNELS_CPU_SOFTMAX_INL_H_
#undef SYRINX_KERNELS_CPU_SOFTMAX_INL_H_
#else
#define SYRINX_KERNELS_CPU_SOFTMAX_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "hwy/highway.h"
#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {

// The largest of scale * x; the scale may be negative.
HWY_INLINE float scaled_maximum(const float* x, float scale, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto s = hn::Set(d, scale);
  auto best = hn::Set(d, -std::numeric_limits<float>::infinity());
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) best = hn::Max(best, hn::Mul(hn::LoadU(d, x + i), s));
  float maximum = hn::GetLane(hn::MaxOfLanes(d, best));
  for (; i < n; ++i) maximum = std::max(maximum, x[i] * scale);
  return maximum;
}

// out = power(scale * x - max), not yet divided; returns the sum.
template <class Power>
HWY_INLINE float powers(Power power, const float* x, float scale, float* out, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto m = hn::Set(d, scaled_maximum(x, scale, n)), s = hn::Set(d, scale);
  auto sum = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    // A product rounded by itself, as the maximum was: the largest exponent is then exactly zero.
    const auto e = power(d, hn::Sub(hn::Mul(hn::LoadU(d, x + i), s), m));
    sum = hn::Add(sum, e);
    hn::StoreU(e, d, out + i);
  }
  if (i < n) {
    const auto e = power(d, hn::Sub(hn::Mul(load_n(d, x + i, n - i), s), m));
    sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, n - i), e));
    store_n(e, d, out + i, n - i);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

struct NaturalPower {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return Exp(d, x);
  }
};

HWY_INLINE float exponentials(const float* x, float scale, float* out, size_t n) {
  return powers(NaturalPower(), x, scale, out, n);
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SYRINX_KERNELS_CPU_SOFTMAX_INL_H_
