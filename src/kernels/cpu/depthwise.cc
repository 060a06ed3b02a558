#include "kernels/depthwise.h"

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/depthwise.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {

// Two output rows from x[t] and x[t + 1] (`next`, nullptr behind the last row).
HWY_INLINE void upsample_row(const float* x, const float* next, const float* w, const float* bias, float* even,
                             float* odd, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, x + i), b = bias != nullptr ? hn::LoadU(d, bias + i) : hn::Zero(d);
    hn::StoreU(hn::MulAdd(hn::LoadU(d, w + n + i), v, b), d, even + i);
    auto y = hn::MulAdd(hn::LoadU(d, w + 2 * n + i), v, b);
    if (next != nullptr) y = hn::MulAdd(hn::LoadU(d, w + i), hn::LoadU(d, next + i), y);
    hn::StoreU(y, d, odd + i);
  }
  if (const size_t rest = n - i; rest > 0) {
    const auto v = load_n(d, x + i, rest), b = bias != nullptr ? load_n(d, bias + i, rest) : hn::Zero(d);
    store_n(hn::MulAdd(load_n(d, w + n + i, rest), v, b), d, even + i, rest);
    auto y = hn::MulAdd(load_n(d, w + 2 * n + i, rest), v, b);
    if (next != nullptr) y = hn::MulAdd(load_n(d, w + i, rest), load_n(d, next + i, rest), y);
    store_n(y, d, odd + i, rest);
  }
}

void upsample_rows(View<const float, 2> x, const float* weight, const float* bias, size_t begin, size_t end,
                   View<float, 2> out) {
  for (size_t t = begin; t < end; ++t) {
    const float* next = t + 1 < x.extent(0) ? x.row(t + 1) : nullptr;
    upsample_row(x.row(t), next, weight, bias, out.row(2 * t), out.row(2 * t + 1), x.extent(1));
  }
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(upsample_rows);

void depthwise_conv_transpose(View<const float, 2> x, const float* weight, const float* bias, size_t begin, size_t end,
                              View<float, 2> out) {
  SYRINX_DCHECK(begin <= end && end <= x.extent(0) && out.extent(0) == 2 * x.extent(0) && out.extent(1) == x.extent(1),
                "rows {} to {} of x [{}, {}], out [{}, {}]", begin, end, x.extent(0), x.extent(1), out.extent(0),
                out.extent(1));
  HWY_DYNAMIC_DISPATCH(upsample_rows)(x, weight, bias, begin, end, out);
}

}  // namespace syrinx::kernels
#endif  // HWY_ONCE
