// Partial vectors at the end of a row: load_n() and store_n() touch exactly n floats, n <= Lanes(d).
// Included once per target; see Highway's rules for -inl.h files.
#if defined(SYRINX_KERNELS_CPU_TAIL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYRINX_KERNELS_CPU_TAIL_INL_H_
#undef SYRINX_KERNELS_CPU_TAIL_INL_H_
#else
#define SYRINX_KERNELS_CPU_TAIL_INL_H_
#endif

#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Where masked memory operations suppress faults; elsewhere Highway's mask is applied after a full access, and a
// small copy is needed to stay inside the row.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_HAVE_SCALABLE
#define SYRINX_MASKED_TAILS 1
#else
#define SYRINX_MASKED_TAILS 0
#endif

// The first n lanes from memory, the others zero.
template <class D>
HWY_INLINE hn::VFromD<D> load_n(D d, const float* HWY_RESTRICT from, size_t n) {
#if SYRINX_MASKED_TAILS
  return hn::MaskedLoad(hn::FirstN(d, n), d, from);
#else
  HWY_ALIGN float lanes[hn::MaxLanes(d)] = {};
  std::memcpy(lanes, from, n * sizeof(float));
  return hn::Load(d, lanes);
#endif
}

template <class D>
HWY_INLINE void store_n(hn::VFromD<D> value, D d, float* HWY_RESTRICT to, size_t n) {
#if SYRINX_MASKED_TAILS
  hn::BlendedStore(value, hn::FirstN(d, n), d, to);
#else
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  hn::Store(value, d, lanes);
  std::memcpy(to, lanes, n * sizeof(float));
#endif
}

// out[i] = op(d, in[i]) over n values; out may be in.
template <class Op>
HWY_INLINE void transform(const float* in, float* out, size_t n, Op op) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(op(d, hn::LoadU(d, in + i)), d, out + i);
  if (i < n) store_n(op(d, load_n(d, in + i, n - i)), d, out + i, n - i);
}

#undef SYRINX_MASKED_TAILS

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SYRINX_KERNELS_CPU_TAIL_INL_H_
