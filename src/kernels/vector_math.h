// Elementary functions over arrays of floats.  out has as many values as the input and may be the same memory.
// No alignment is asked for.  Thread-safe; deterministic on one target.
// Accuracy (tested on every target; cpu/math-inl.h has the same functions on one vector, to be fused):
//   exp 1.5 ulp (0 below -104, infinity above 88.73) · sin, cos 1.5e-7 and sin_squared 3e-7 absolute for |x| <= 1e4
//   atan2 4e-7 rad · tanh 3 ulp · sigmoid 4 ulp.  NaN stays NaN.
#pragma once

#include <span>

namespace syrinx::kernels {

void exp_array(std::span<const float> in, std::span<float> out);
void sin_array(std::span<const float> in, std::span<float> out);
void cos_array(std::span<const float> in, std::span<float> out);
void sin_squared_array(std::span<const float> in, std::span<float> out);
void tanh_array(std::span<const float> in, std::span<float> out);
void sigmoid_array(std::span<const float> in, std::span<float> out);
// The angle of the point (x, y), in (-pi, pi]; finite arguments.
void atan2_array(std::span<const float> y, std::span<const float> x, std::span<float> out);

}  // namespace syrinx::kernels
