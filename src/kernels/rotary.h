// Rotary position embedding, interleaved pairs: in a head of D floats the pair (x[2i], x[2i + 1]) turns by the angle
// position * theta_i, theta_i = period^(-2i / D).  (a, b) becomes (a cos - b sin, a sin + b cos).
//
// Angles are made once for the rows of a pass and serve all layers and heads.  No alignment is asked for.  Thread-safe.
#pragma once

#include <cstddef>
#include <span>

#include "tensor/view.h"

namespace syrinx::kernels {

// theta_0, theta_1, ...: one a pair, so theta.size() is D / 2.  As the makers compute them: the exponents are
// multiples, rounded to f32, of -ln(period) 2 / D rounded to f32; near position 2000 that turns by up to 6e-5 rad
// otherwise than the powers themselves.  Load time only.
void rotary_frequencies(float period, std::span<float> theta);

// Cosines and sines of position * theta for the positions first, first + 1, ...; both [N, D / 2].  The product is
// rounded to f32, as the makers do; then 1.5e-7 absolute up to an angle of 1e4 (vector_math.h), less accurate beyond.
void rotary_angles(std::span<const float> theta, size_t first_position, View<float, 2> cosines, View<float, 2> sines);

// Turns every head of x [N, heads * D] in place, row n by row n of the angles; each product and sum is rounded by
// itself.
void rotary(View<const float, 2> cosines, View<const float, 2> sines, View<float, 2> x);

}  // namespace syrinx::kernels
