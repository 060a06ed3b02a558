#include "kernels/rms_norm.h"

#include <cmath>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rms_norm.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {

// Two sums: one fused addition has a latency of four cycles.
HWY_INLINE float sum_of_row_squares(const float* x, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  auto sum0 = hn::Zero(d), sum1 = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto x0 = hn::LoadU(d, x + i), x1 = hn::LoadU(d, x + i + lanes);
    sum0 = hn::MulAdd(x0, x0, sum0);
    sum1 = hn::MulAdd(x1, x1, sum1);
  }
  if (i + lanes <= n) {
    const auto x0 = hn::LoadU(d, x + i);
    sum0 = hn::MulAdd(x0, x0, sum0);
    i += lanes;
  }
  if (i < n) {
    const auto x1 = load_n(d, x + i, n - i);
    sum1 = hn::MulAdd(x1, x1, sum1);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
}

void rms_rows(View<const float, 2> x, const float* gamma, float epsilon, View<float, 2> out) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d), n = x.extent(1);
  for (size_t t = 0; t < x.extent(0); ++t) {
    const float* const row = x.row(t);
    float* const to = out.row(t);
    const auto scale = hn::Set(d, 1.0f / std::sqrt(sum_of_row_squares(row, n) / static_cast<float>(n) + epsilon));
    size_t i = 0;
    for (; i + lanes <= n; i += lanes)
      hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(d, row + i), scale), hn::LoadU(d, gamma + i)), d, to + i);
    if (i < n)
      store_n(hn::Mul(hn::Mul(load_n(d, row + i, n - i), scale), load_n(d, gamma + i, n - i)), d, to + i, n - i);
  }
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(rms_rows);

void rms_norm(View<const float, 2> x, const float* gamma, float epsilon, View<float, 2> out) {
  SYRINX_DCHECK(x.extent(0) == out.extent(0) && x.extent(1) == out.extent(1), "x [{}, {}] out [{}, {}]", x.extent(0),
                x.extent(1), out.extent(0), out.extent(1));
  HWY_DYNAMIC_DISPATCH(rms_rows)(x, gamma, epsilon, out);
}

}  // namespace syrinx::kernels
#endif  // HWY_ONCE
