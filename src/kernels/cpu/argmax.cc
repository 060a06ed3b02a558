#include "kernels/argmax.h"

#include <limits>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/argmax.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Two passes, because a maximum that carries its index along costs more than reading a few kilobytes again.
Peak find_peak(const float* values, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  auto most = hn::Set(d, -std::numeric_limits<float>::infinity()), more = most;
  auto ordered = hn::Zero(d);  // stays zero unless a value is NaN or infinite
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto a = hn::LoadU(d, values + i), b = hn::LoadU(d, values + i + lanes);
    most = hn::Max(most, a);
    more = hn::Max(more, b);
    ordered = hn::Add(ordered, hn::Add(hn::Sub(a, a), hn::Sub(b, b)));
  }
  // One by one: MaxOfLanes of Highway 1.0.3's emulated target begins at the lowest finite value.
  HWY_ALIGN float lane_peaks[hn::MaxLanes(d)];
  hn::Store(hn::Max(most, more), d, lane_peaks);
  float peak = lane_peaks[0];
  for (size_t lane = 1; lane < lanes; ++lane) peak = lane_peaks[lane] > peak ? lane_peaks[lane] : peak;
  float odd = hn::GetLane(hn::SumOfLanes(d, ordered));
  for (; i < n; ++i) {
    peak = values[i] > peak ? values[i] : peak;
    odd += values[i] - values[i];
  }
  if (odd != 0.0f) {
    for (size_t k = 0; k < n; ++k)
      if (values[k] != values[k]) return {std::numeric_limits<float>::quiet_NaN(), 0};
  }
  size_t first = 0;
  for (const auto wanted = hn::Set(d, peak); first + lanes <= n; first += lanes) {
    const auto at = hn::FindFirstTrue(d, hn::Eq(hn::LoadU(d, values + first), wanted));
    if (at >= 0) return {peak, first + static_cast<size_t>(at)};
  }
  while (first + 1 < n && values[first] != peak) ++first;
  return {peak, first};
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(find_peak);

Peak argmax(std::span<const float> values) {
  SYRINX_DCHECK(!values.empty(), "nothing to choose from");
  return HWY_DYNAMIC_DISPATCH(find_peak)(values.data(), values.size());
}

}  // namespace syrinx::kernels
#endif  // HWY_ONCE
