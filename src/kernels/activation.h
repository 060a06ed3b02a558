// Activation functions over arrays; out may be in.  No alignment is asked for.  Thread-safe.
#pragma once

#include <span>

namespace syrinx::kernels {

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), the "tanh form" of GELU; 1e-6 of |x| absolute.
void gelu_tanh(std::span<const float> in, std::span<float> out);
// x / 2 (1 + erf(x / sqrt(2))), GELU as it is defined; 1e-6 of |x| absolute.
void gelu_erf(std::span<const float> in, std::span<float> out);
// x where x >= 0, else e^x - 1; 3 ulp.
void elu(std::span<const float> in, std::span<float> out);
// x * sigmoid(x), called SiLU or swish; 1e-6 of |x| absolute.
void silu(std::span<const float> in, std::span<float> out);
// x where x >= 0, else slope * x; exact.
void leaky_relu(std::span<const float> in, float slope, std::span<float> out);

}  // namespace syrinx::kernels
