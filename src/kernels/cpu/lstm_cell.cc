#include "kernels/lstm_cell.h"

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/lstm_cell.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {

template <class D, class V>
HWY_INLINE V next_cell(D d, V i, V f, V g, V c) {
  return hn::MulAdd(Sigmoid(d, f), c, hn::Mul(Sigmoid(d, i), Tanh(d, g)));
}

void lstm_step(const float* HWY_RESTRICT gates, float* HWY_RESTRICT cell, float* HWY_RESTRICT hidden, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const float *gi = gates, *gf = gates + n, *gg = gates + 2 * n, *go = gates + 3 * n;
  size_t k = 0;
  for (; k + lanes <= n; k += lanes) {
    const auto c =
        next_cell(d, hn::LoadU(d, gi + k), hn::LoadU(d, gf + k), hn::LoadU(d, gg + k), hn::LoadU(d, cell + k));
    hn::StoreU(c, d, cell + k);
    hn::StoreU(hn::Mul(Sigmoid(d, hn::LoadU(d, go + k)), Tanh(d, c)), d, hidden + k);
  }
  if (const size_t rest = n - k; rest > 0) {
    const auto c = next_cell(d, load_n(d, gi + k, rest), load_n(d, gf + k, rest), load_n(d, gg + k, rest),
                             load_n(d, cell + k, rest));
    store_n(c, d, cell + k, rest);
    store_n(hn::Mul(Sigmoid(d, load_n(d, go + k, rest)), Tanh(d, c)), d, hidden + k, rest);
  }
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(lstm_step);

void lstm_cell(std::span<const float> gates, std::span<float> cell, std::span<float> hidden) {
  SYRINX_DCHECK(gates.size() == 4 * cell.size() && cell.size() == hidden.size(), "gates {} cell {} hidden {}",
                gates.size(), cell.size(), hidden.size());
  HWY_DYNAMIC_DISPATCH(lstm_step)(gates.data(), cell.data(), hidden.data(), cell.size());
}

}  // namespace syrinx::kernels
#endif  // HWY_ONCE
