#include "kernels/glu.h"

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/glu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {

void glu_rows(View<const float, 2> x, View<float, 2> out) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d), n = out.extent(1);
  for (size_t t = 0; t < x.extent(0); ++t) {
    const float *const a = x.row(t), *const b = a + n;
    float* const y = out.row(t);
    size_t i = 0;
    for (; i + lanes <= n; i += lanes)
      hn::StoreU(hn::Mul(hn::LoadU(d, a + i), Sigmoid(d, hn::LoadU(d, b + i))), d, y + i);
    if (i < n) store_n(hn::Mul(load_n(d, a + i, n - i), Sigmoid(d, load_n(d, b + i, n - i))), d, y + i, n - i);
  }
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(glu_rows);

void glu(View<const float, 2> x, View<float, 2> out) {
  SYRINX_DCHECK(x.extent(0) == out.extent(0) && x.extent(1) == 2 * out.extent(1), "x [{}, {}], out [{}, {}]",
                x.extent(0), x.extent(1), out.extent(0), out.extent(1));
  HWY_DYNAMIC_DISPATCH(glu_rows)(x, out);
}

}  // namespace syrinx::kernels
#endif  // HWY_ONCE
