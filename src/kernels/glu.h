// Gated linear units over rows: out = a * sigmoid(b), where a and b are the halves of a row (Dauphin et al., 2017).
// Rows are contiguous, strides are free; out may not overlap x.  2e-6 of |a| absolute.  Thread-safe, allocates nothing.
#pragma once

#include "tensor/view.h"

namespace syrinx::kernels {

// x [T, 2 C] -> out [T, C]
void glu(View<const float, 2> x, View<float, 2> out);

}  // namespace syrinx::kernels
