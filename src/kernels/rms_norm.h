// Norm by the root of the mean square over the channels of each row: out = gamma * x / sqrt(mean(x^2) + eps) (Zhang and
// Sennrich, 2019).  Rows are contiguous, their stride is free; out may be x.  Thread-safe, allocates nothing.
#pragma once

#include "tensor/view.h"

namespace syrinx::kernels {

// x [T, C] -> out [T, C]; gamma is [C].
void rms_norm(View<const float, 2> x, const float* gamma, float epsilon, View<float, 2> out);

}  // namespace syrinx::kernels
