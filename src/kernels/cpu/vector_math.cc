#include "kernels/vector_math.h"

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/vector_math.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {

struct ExpOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return Exp(d, x);
  }
};
struct SinOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return Sin(d, x);
  }
};
struct CosOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return Cos(d, x);
  }
};
struct SinSquaredOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return SinSquared(d, x);
  }
};
struct TanhOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return Tanh(d, x);
  }
};
struct SigmoidOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return Sigmoid(d, x);
  }
};

void exp_values(const float* in, float* out, size_t n) { transform(in, out, n, ExpOp()); }
void sin_values(const float* in, float* out, size_t n) { transform(in, out, n, SinOp()); }
void cos_values(const float* in, float* out, size_t n) { transform(in, out, n, CosOp()); }
void sin_squared_values(const float* in, float* out, size_t n) { transform(in, out, n, SinSquaredOp()); }
void tanh_values(const float* in, float* out, size_t n) { transform(in, out, n, TanhOp()); }
void sigmoid_values(const float* in, float* out, size_t n) { transform(in, out, n, SigmoidOp()); }

void atan2_values(const float* y, const float* x, float* out, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(Atan2(d, hn::LoadU(d, y + i), hn::LoadU(d, x + i)), d, out + i);
  if (i < n) store_n(Atan2(d, load_n(d, y + i, n - i), load_n(d, x + i, n - i)), d, out + i, n - i);
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(exp_values);
HWY_EXPORT(sin_values);
HWY_EXPORT(cos_values);
HWY_EXPORT(sin_squared_values);
HWY_EXPORT(tanh_values);
HWY_EXPORT(sigmoid_values);
HWY_EXPORT(atan2_values);

void exp_array(std::span<const float> in, std::span<float> out) {
  SYRINX_DCHECK(in.size() == out.size(), "in {} out {}", in.size(), out.size());
  HWY_DYNAMIC_DISPATCH(exp_values)(in.data(), out.data(), in.size());
}
void sin_array(std::span<const float> in, std::span<float> out) {
  SYRINX_DCHECK(in.size() == out.size(), "in {} out {}", in.size(), out.size());
  HWY_DYNAMIC_DISPATCH(sin_values)(in.data(), out.data(), in.size());
}
void cos_array(std::span<const float> in, std::span<float> out) {
  SYRINX_DCHECK(in.size() == out.size(), "in {} out {}", in.size(), out.size());
  HWY_DYNAMIC_DISPATCH(cos_values)(in.data(), out.data(), in.size());
}
void sin_squared_array(std::span<const float> in, std::span<float> out) {
  SYRINX_DCHECK(in.size() == out.size(), "in {} out {}", in.size(), out.size());
  HWY_DYNAMIC_DISPATCH(sin_squared_values)(in.data(), out.data(), in.size());
}
void tanh_array(std::span<const float> in, std::span<float> out) {
  SYRINX_DCHECK(in.size() == out.size(), "in {} out {}", in.size(), out.size());
  HWY_DYNAMIC_DISPATCH(tanh_values)(in.data(), out.data(), in.size());
}
void sigmoid_array(std::span<const float> in, std::span<float> out) {
  SYRINX_DCHECK(in.size() == out.size(), "in {} out {}", in.size(), out.size());
  HWY_DYNAMIC_DISPATCH(sigmoid_values)(in.data(), out.data(), in.size());
}
void atan2_array(std::span<const float> y, std::span<const float> x, std::span<float> out) {
  SYRINX_DCHECK(y.size() == out.size() && x.size() == out.size(), "y {} x {} out {}", y.size(), x.size(), out.size());
  HWY_DYNAMIC_DISPATCH(atan2_values)(y.data(), x.data(), out.data(), out.size());
}

}  // namespace syrinx::kernels
#endif  // HWY_ONCE
