// A kernel that says which target it runs on: what dispatch really does, whatever the names say.
#include "target_probe.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "target_probe.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {
int64_t own_target() { return HWY_TARGET; }
}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {
HWY_EXPORT(own_target);
int64_t executed_target() { return HWY_DYNAMIC_DISPATCH(own_target)(); }
}  // namespace syrinx::kernels
#endif  // HWY_ONCE
