#include "kernels/softmax.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "kernels/block_exponentials.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/softmax.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/softmax-inl.h"
#include "kernels/cpu/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {

struct ScaleOp {
  float factor;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V v) const {
    return hn::Mul(v, hn::Set(d, factor));
  }
};

void softmax_rows(View<const float, 2> x, float scale, View<float, 2> out) {
  const size_t n = x.extent(1);
  for (size_t t = 0; t < x.extent(0); ++t) {
    const float sum = exponentials(x.row(t), scale, out.row(t), n);
    transform(out.row(t), out.row(t), n, ScaleOp{1.0f / sum});
  }
}

// In double, through a buffer, because the scalar target has no halves of vectors.
HWY_INLINE double sum_block(const float* HWY_RESTRICT terms) {
  const hn::CappedTag<double, kExponentialBlock / 2> dd;
  const hn::Rebind<float, decltype(dd)> d;
  const size_t lanes = hn::Lanes(dd);
  auto sum = hn::Zero(dd), other = sum;
  for (size_t i = 0; i < kExponentialBlock; i += 2 * lanes) {
    sum = hn::Add(sum, hn::PromoteTo(dd, hn::Load(d, terms + i)));
    other = hn::Add(other, hn::PromoteTo(dd, hn::Load(d, terms + i + lanes)));
  }
  return hn::GetLane(hn::SumOfLanes(dd, hn::Add(sum, other)));
}

void sum_exponentials(const float* values, size_t n, float peak, float temperature, double* sums, float* maxima) {
  const hn::CappedTag<float, kExponentialBlock> d;
  const size_t lanes = hn::Lanes(d);
  const auto most = hn::Set(d, peak), divisor = hn::Set(d, temperature);
  const auto least = hn::Set(d, kLeastExponent);  // denormal numbers would take many times as long
  const auto lowest = hn::Set(d, std::numeric_limits<float>::lowest());
  HWY_ALIGN float terms[kExponentialBlock];
  for (size_t begin = 0; begin < n; begin += kExponentialBlock) {
    const size_t count = std::min(kExponentialBlock, n - begin);
    auto maximum = lowest;
    size_t i = 0;
    const auto take = [&](hn::VFromD<decltype(d)> x) HWY_ATTR {
      maximum = hn::Max(maximum, x);
      const auto exponent = hn::Div(hn::Sub(x, most), divisor);
      const auto counts = hn::Ge(exponent, least);
      hn::Store(hn::IfThenElseZero(counts, Exp(d, hn::Max(exponent, least))), d, terms + i);
    };
    for (; i + lanes <= count; i += lanes) take(hn::LoadU(d, values + begin + i));
    if (i < count) {
      const auto nothing = hn::Set(d, -std::numeric_limits<float>::infinity());
      take(hn::IfThenElse(hn::FirstN(d, count - i), load_n(d, values + begin + i, count - i), nothing));
      i += lanes;
    }
    if (i < kExponentialBlock) std::fill(terms + i, terms + kExponentialBlock, 0.0f);
    sums[begin / kExponentialBlock] = sum_block(terms);
    maxima[begin / kExponentialBlock] = hn::GetLane(hn::MaxOfLanes(d, maximum));
  }
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(softmax_rows);
HWY_EXPORT(sum_exponentials);

void softmax(View<const float, 2> x, float scale, View<float, 2> out) {
  SYRINX_DCHECK(x.extent(0) == out.extent(0) && x.extent(1) == out.extent(1) && x.extent(1) > 0,
                "x [{}, {}] out [{}, {}]", x.extent(0), x.extent(1), out.extent(0), out.extent(1));
  HWY_DYNAMIC_DISPATCH(softmax_rows)(x, scale, out);
}

void block_exponentials(std::span<const float> values, float peak, float temperature, std::span<double> sums,
                        std::span<float> maxima) {
  SYRINX_DCHECK(sums.size() == exponential_blocks(values.size()) && maxima.size() == sums.size(),
                "values {} sums {} maxima {}", values.size(), sums.size(), maxima.size());
  HWY_DYNAMIC_DISPATCH(sum_exponentials)(values.data(), values.size(), peak, temperature, sums.data(), maxima.data());
}

}  // namespace syrinx::kernels
#endif  // HWY_ONCE
