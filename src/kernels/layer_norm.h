// Layer norm over the channels of each row: ln(x) = (x - mean) / sqrt(var + eps), var biased, over C values.
// Rows are contiguous, their stride is free; out may be x (or a, or b).  The mean is taken first, the variance from the
// differences, so that a large common offset costs no accuracy.  A caller splits the work by passing views of some
// rows.
#pragma once

#include "tensor/view.h"

namespace syrinx::kernels {

// Affine step behind the norm: gamma * ln(x) + beta.  nullptr stands for ones, zeros.  [C] each.
struct NormAffine {
  const float* gamma = nullptr;
  const float* beta = nullptr;
};

// x [T, C] -> out [T, C]
void layer_norm(View<const float, 2> x, NormAffine affine, float epsilon, View<float, 2> out);
// out = (1 + gamma) * ln(x) + beta: gamma and beta come from a style vector and are not optional.
void adaptive_layer_norm(View<const float, 2> x, const float* gamma, const float* beta, float epsilon,
                         View<float, 2> out);
// out = affine(ln(a + b)): the residual add and the norm in one pass over memory.
void add_layer_norm(View<const float, 2> a, View<const float, 2> b, NormAffine affine, float epsilon,
                    View<float, 2> out);

}  // namespace syrinx::kernels
