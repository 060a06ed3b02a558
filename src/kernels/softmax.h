// Softmax of each row, after a scale: out = exp(scale * x - max) / sum.  Stable for any finite input; minus infinity
// masks a value out as long as one of the row is finite.  Rows are contiguous, out may be x.
#pragma once

#include "tensor/view.h"

namespace syrinx::kernels {

// x [T, N] -> out [T, N], N >= 1.
void softmax(View<const float, 2> x, float scale, View<float, 2> out);

}  // namespace syrinx::kernels
