// The Highway target that a dispatched function really ran on.
#pragma once

#include <cstdint>

namespace syrinx::kernels {
int64_t executed_target();
}  // namespace syrinx::kernels
