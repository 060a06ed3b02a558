#include "kernels/swiglu.h"

#include "tensor/packed_matrix.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/swiglu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void gate_panels(const float* HWY_RESTRICT pairs, size_t count, float* HWY_RESTRICT out) {
  const hn::CappedTag<float, kPanelColumns> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t p = 0; p < count; ++p, pairs += 2 * kPanelColumns, out += kPanelColumns) {
    for (size_t i = 0; i < kPanelColumns; i += lanes) {
      const auto gate = hn::LoadU(d, pairs + i);
      hn::StoreU(hn::Mul(hn::Mul(gate, Sigmoid(d, gate)), hn::LoadU(d, pairs + kPanelColumns + i)), d, out + i);
    }
  }
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(gate_panels);

void swiglu_panels(const float* pairs, size_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(gate_panels)(pairs, count, out);
}

}  // namespace syrinx::kernels
#endif  // HWY_ONCE
