#include "kernels/softmax.h"

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/softmax.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/softmax-inl.h"

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

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(softmax_rows);

void softmax(View<const float, 2> x, float scale, View<float, 2> out) {
  SYRINX_DCHECK(x.extent(0) == out.extent(0) && x.extent(1) == out.extent(1) && x.extent(1) > 0,
                "x [{}, {}] out [{}, {}]", x.extent(0), x.extent(1), out.extent(0), out.extent(1));
  HWY_DYNAMIC_DISPATCH(softmax_rows)(x, scale, out);
}

}  // namespace syrinx::kernels
#endif  // HWY_ONCE
