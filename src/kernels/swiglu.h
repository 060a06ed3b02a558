// The gated unit of SwiGLU (Shazeer, 2020) on gates and values whose panels alternate, as a matrix with interleaved
// panels gives them: 32 gates, their 32 values, the next 32 gates ...  So whoever computed a pair of panels has both.
#pragma once

#include <cstddef>

namespace syrinx::kernels {

// out[32 p + i] = silu(gate) * value, gate = pairs[64 p + i], value = pairs[64 p + 32 + i], for `count` pairs of
// panels. silu(x) = x * sigmoid(x); 2e-6 of |gate * value| absolute.  out may not overlap pairs.  Thread-safe.
void swiglu_panels(const float* pairs, size_t count, float* out);

}  // namespace syrinx::kernels
