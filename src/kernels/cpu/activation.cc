#include "kernels/activation.h"

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/activation.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {

struct GeluOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return GeluTanh(d, x);
  }
};

struct SiluOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Mul(x, Sigmoid(d, x));
  }
};

struct GeluErfOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return GeluErf(d, x);
  }
};

struct EluOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return Elu(d, x);
  }
};

struct LeakyReluOp {
  float slope;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, hn::Set(d, slope)), x);
  }
};

void gelu_values(const float* in, float* out, size_t n) { transform(in, out, n, GeluOp()); }
void silu_values(const float* in, float* out, size_t n) { transform(in, out, n, SiluOp()); }
void gelu_erf_values(const float* in, float* out, size_t n) { transform(in, out, n, GeluErfOp()); }
void elu_values(const float* in, float* out, size_t n) { transform(in, out, n, EluOp()); }
void leaky_relu_values(const float* in, float slope, float* out, size_t n) {
  transform(in, out, n, LeakyReluOp{slope});
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(gelu_values);
HWY_EXPORT(silu_values);
HWY_EXPORT(gelu_erf_values);
HWY_EXPORT(elu_values);
HWY_EXPORT(leaky_relu_values);

void gelu_tanh(std::span<const float> in, std::span<float> out) {
  SYRINX_DCHECK(in.size() == out.size(), "in {} out {}", in.size(), out.size());
  HWY_DYNAMIC_DISPATCH(gelu_values)(in.data(), out.data(), in.size());
}
void silu(std::span<const float> in, std::span<float> out) {
  SYRINX_DCHECK(in.size() == out.size(), "in {} out {}", in.size(), out.size());
  HWY_DYNAMIC_DISPATCH(silu_values)(in.data(), out.data(), in.size());
}
void gelu_erf(std::span<const float> in, std::span<float> out) {
  SYRINX_DCHECK(in.size() == out.size(), "in {} out {}", in.size(), out.size());
  HWY_DYNAMIC_DISPATCH(gelu_erf_values)(in.data(), out.data(), in.size());
}
void elu(std::span<const float> in, std::span<float> out) {
  SYRINX_DCHECK(in.size() == out.size(), "in {} out {}", in.size(), out.size());
  HWY_DYNAMIC_DISPATCH(elu_values)(in.data(), out.data(), in.size());
}
void leaky_relu(std::span<const float> in, float slope, std::span<float> out) {
  SYRINX_DCHECK(in.size() == out.size(), "in {} out {}", in.size(), out.size());
  HWY_DYNAMIC_DISPATCH(leaky_relu_values)(in.data(), slope, out.data(), in.size());
}

}  // namespace syrinx::kernels
#endif  // HWY_ONCE
