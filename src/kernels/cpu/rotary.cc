#include "kernels/rotary.h"

#include <cmath>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rotary.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {

struct CosineOp {
  float position;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V theta) const {
    return Cos(d, hn::Mul(theta, hn::Set(d, position)));
  }
};

struct SineOp {
  float position;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V theta) const {
    return Sin(d, hn::Mul(theta, hn::Set(d, position)));
  }
};

void angles_of_row(const float* theta, size_t pairs, float position, float* cosines, float* sines) {
  transform(theta, cosines, pairs, CosineOp{position});
  transform(theta, sines, pairs, SineOp{position});
}

void rotate_head(const float* HWY_RESTRICT cosines, const float* HWY_RESTRICT sines, size_t pairs,
                 float* HWY_RESTRICT x) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= pairs; i += lanes) {
    hn::Vec<decltype(d)> a, b;
    hn::LoadInterleaved2(d, x + 2 * i, a, b);
    const auto c = hn::LoadU(d, cosines + i), s = hn::LoadU(d, sines + i);
    const auto turned_a = hn::Sub(hn::Mul(a, c), hn::Mul(b, s));
    const auto turned_b = hn::Add(hn::Mul(a, s), hn::Mul(b, c));
    hn::StoreInterleaved2(turned_a, turned_b, d, x + 2 * i);
  }
  for (; i < pairs; ++i) {
    const float a = x[2 * i], b = x[2 * i + 1];
    x[2 * i] = a * cosines[i] - b * sines[i];
    x[2 * i + 1] = a * sines[i] + b * cosines[i];
  }
}

void rotate_rows(View<const float, 2> cosines, View<const float, 2> sines, View<float, 2> x) {
  const size_t pairs = cosines.extent(1);
  for (size_t n = 0; n < x.extent(0); ++n) {
    for (size_t column = 0; column < x.extent(1); column += 2 * pairs)
      rotate_head(cosines.row(n), sines.row(n), pairs, x.row(n) + column);
  }
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(angles_of_row);
HWY_EXPORT(rotate_rows);

void rotary_frequencies(float period, std::span<float> theta) {
  const float step = static_cast<float>(-std::log(static_cast<double>(period)) / static_cast<double>(theta.size()));
  for (size_t i = 0; i < theta.size(); ++i) {
    const float exponent = static_cast<float>(i) * step;
    theta[i] = static_cast<float>(std::exp(static_cast<double>(exponent)));
  }
}

void rotary_angles(std::span<const float> theta, size_t first_position, View<float, 2> cosines, View<float, 2> sines) {
  SYRINX_DCHECK(
      cosines.extent(1) == theta.size() && sines.extent(1) == theta.size() && cosines.extent(0) == sines.extent(0),
      "{} frequencies, {} cosines, {} sines", theta.size(), cosines.extent(1), sines.extent(1));
  for (size_t n = 0; n < cosines.extent(0); ++n) {
    HWY_DYNAMIC_DISPATCH(angles_of_row)
    (theta.data(), theta.size(), static_cast<float>(first_position + n), cosines.row(n), sines.row(n));
  }
}

void rotary(View<const float, 2> cosines, View<const float, 2> sines, View<float, 2> x) {
  SYRINX_DCHECK(cosines.extent(0) >= x.extent(0) && sines.extent(0) >= x.extent(0) && cosines.extent(1) > 0 &&
                    cosines.extent(1) == sines.extent(1) && x.extent(1) % (2 * cosines.extent(1)) == 0,
                "{} columns of {} pairs a head", x.extent(1), cosines.extent(1));
  HWY_DYNAMIC_DISPATCH(rotate_rows)(cosines, sines, x);
}

}  // namespace syrinx::kernels
#endif  // HWY_ONCE
