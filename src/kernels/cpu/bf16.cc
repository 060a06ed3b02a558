#include "kernels/bf16.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/bf16.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/bf16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {

using F32 = hn::ScalableTag<float>;

void round_rows_target(View<const float, 2> rows, uint16_t* to, size_t stride) {
  const F32 d;
  const size_t columns = rows.extent(1), whole = columns / hn::Lanes(d) * hn::Lanes(d);
  for (size_t m = 0; m < rows.extent(0); ++m, to += stride) {
    const float* const from = rows.row(m);
    for (size_t n = 0; n < whole; n += hn::Lanes(d)) StoreBf16(d, hn::LoadU(d, from + n), to + n);
    if (whole == columns) continue;
    uint16_t rest[hn::MaxLanes(d)];
    StoreBf16(d, load_n(d, from + whole, columns - whole), rest);
    std::copy_n(rest, columns - whole, to + whole);
  }
}

void widen_rows_target(View<const uint16_t, 2> rows, float* to, size_t stride) {
  const F32 d;
  const size_t columns = rows.extent(1), whole = columns / hn::Lanes(d) * hn::Lanes(d);
  for (size_t m = 0; m < rows.extent(0); ++m, to += stride) {
    const uint16_t* const from = rows.row(m);
    for (size_t n = 0; n < whole; n += hn::Lanes(d)) hn::StoreU(load_as_f32(d, from + n), d, to + n);
    if (whole < columns) store_n(load_n_as_f32(d, from + whole, columns - whole), d, to + whole, columns - whole);
  }
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(round_rows_target);
HWY_EXPORT(widen_rows_target);

void round_rows(View<const float, 2> rows, uint16_t* to, size_t stride) {
  HWY_DYNAMIC_DISPATCH(round_rows_target)(rows, to, stride);
}

void widen_rows(View<const uint16_t, 2> rows, float* to, size_t stride) {
  HWY_DYNAMIC_DISPATCH(widen_rows_target)(rows, to, stride);
}

}  // namespace syrinx::kernels
#endif  // HWY_ONCE
