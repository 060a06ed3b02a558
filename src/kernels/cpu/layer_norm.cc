#include "kernels/layer_norm.h"

#include <cmath>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/layer_norm.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {

// out = a + b (or a copy of a), and its sum.  Two accumulators: one addition has a latency of four cycles.
HWY_INLINE float add_and_sum(const float* a, const float* b, float* out, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  auto sum0 = hn::Zero(d), sum1 = hn::Zero(d);
  size_t i = 0;
  const auto load = [&](size_t at) HWY_ATTR {
    auto v = hn::LoadU(d, a + at);
    if (b != nullptr) {
      v = hn::Add(v, hn::LoadU(d, b + at));
      hn::StoreU(v, d, out + at);
    }
    return v;
  };
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    sum0 = hn::Add(sum0, load(i));
    sum1 = hn::Add(sum1, load(i + lanes));
  }
  if (i + lanes <= n) {
    sum0 = hn::Add(sum0, load(i));
    i += lanes;
  }
  if (i < n) {
    auto v = load_n(d, a + i, n - i);
    if (b != nullptr) {
      v = hn::Add(v, load_n(d, b + i, n - i));
      store_n(v, d, out + i, n - i);
    }
    sum1 = hn::Add(sum1, v);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
}

HWY_INLINE float sum_of_squares(const float* x, float mean, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto m = hn::Set(d, mean);
  auto sum0 = hn::Zero(d), sum1 = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto x0 = hn::Sub(hn::LoadU(d, x + i), m), x1 = hn::Sub(hn::LoadU(d, x + i + lanes), m);
    sum0 = hn::MulAdd(x0, x0, sum0);
    sum1 = hn::MulAdd(x1, x1, sum1);
  }
  if (i + lanes <= n) {
    const auto x0 = hn::Sub(hn::LoadU(d, x + i), m);
    sum0 = hn::MulAdd(x0, x0, sum0);
    i += lanes;
  }
  if (i < n) {
    const auto x1 = hn::IfThenElseZero(hn::FirstN(d, n - i), hn::Sub(load_n(d, x + i, n - i), m));
    sum1 = hn::MulAdd(x1, x1, sum1);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
}

struct NormOp {
  const float* gamma;
  const float* beta;
  float gamma_offset;  // 1 where gamma is a difference from one
  template <class D, class V>
  HWY_INLINE V full(D d, V v, size_t i) const {
    if (gamma != nullptr) v = hn::Mul(v, hn::Add(hn::LoadU(d, gamma + i), hn::Set(d, gamma_offset)));
    if (beta != nullptr) v = hn::Add(v, hn::LoadU(d, beta + i));
    return v;
  }
  template <class D, class V>
  HWY_INLINE V part(D d, V v, size_t i, size_t n) const {
    if (gamma != nullptr) v = hn::Mul(v, hn::Add(load_n(d, gamma + i, n), hn::Set(d, gamma_offset)));
    if (beta != nullptr) v = hn::Add(v, load_n(d, beta + i, n));
    return v;
  }
};

void norm_row(const float* a, const float* b, const NormOp& op, float epsilon, float* out, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const float mean = add_and_sum(a, b, out, n) / static_cast<float>(n);
  const float* x = b != nullptr ? out : a;
  const float scale = 1.0f / std::sqrt(sum_of_squares(x, mean, n) / static_cast<float>(n) + epsilon);
  const auto m = hn::Set(d, mean), s = hn::Set(d, scale);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(op.full(d, hn::Mul(hn::Sub(hn::LoadU(d, x + i), m), s), i), d, out + i);
  }
  if (i < n) {
    store_n(op.part(d, hn::Mul(hn::Sub(load_n(d, x + i, n - i), m), s), i, n - i), d, out + i, n - i);
  }
}

void norm_rows(View<const float, 2> a, View<const float, 2> b, const float* gamma, const float* beta,
               float gamma_offset, float epsilon, View<float, 2> out) {
  const NormOp op{gamma, beta, gamma_offset};
  for (size_t t = 0; t < a.extent(0); ++t) {
    norm_row(a.row(t), b.data() != nullptr ? b.row(t) : nullptr, op, epsilon, out.row(t), a.extent(1));
  }
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(norm_rows);

namespace {
void check_shapes([[maybe_unused]] View<const float, 2> x, [[maybe_unused]] View<float, 2> out) {
  SYRINX_DCHECK(x.extent(0) == out.extent(0) && x.extent(1) == out.extent(1), "x [{}, {}] out [{}, {}]", x.extent(0),
                x.extent(1), out.extent(0), out.extent(1));
}
}  // namespace

void layer_norm(View<const float, 2> x, NormAffine affine, float epsilon, View<float, 2> out) {
  check_shapes(x, out);
  HWY_DYNAMIC_DISPATCH(norm_rows)(x, {}, affine.gamma, affine.beta, 0.0f, epsilon, out);
}

void adaptive_layer_norm(View<const float, 2> x, const float* gamma, const float* beta, float epsilon,
                         View<float, 2> out) {
  check_shapes(x, out);
  HWY_DYNAMIC_DISPATCH(norm_rows)(x, {}, gamma, beta, 1.0f, epsilon, out);
}

void add_layer_norm(View<const float, 2> a, View<const float, 2> b, NormAffine affine, float epsilon,
                    View<float, 2> out) {
  check_shapes(a, out);
  check_shapes(b, out);
  HWY_DYNAMIC_DISPATCH(norm_rows)(a, b, affine.gamma, affine.beta, 0.0f, epsilon, out);
}

}  // namespace syrinx::kernels
#endif  // HWY_ONCE
