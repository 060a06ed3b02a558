// Depthwise transposed convolution, kernel 3, stride 2, padding 1, output padding 1, on time-major rows: the learnt
// upsampling of Kokoro's decoder blocks (specification 4.1), PyTorch's ConvTranspose1d(C, C, 3, 2, 1, 1, groups=C).
#pragma once

#include "tensor/view.h"

namespace syrinx::kernels {

// Input rows [begin, end) of x [T, C] give rows [2 begin, 2 end) of out [2T, C]:
//   out[2t]     = bias + weight[1] x[t]
//   out[2t + 1] = bias + weight[2] x[t] + weight[0] x[t + 1]      (the last term only where t + 1 < T)
// weight [3, C] is tap-major: the transpose of PyTorch's [C, 1, 3].  bias [C] or nullptr.  out must not overlap x.
void depthwise_conv_transpose(View<const float, 2> x, const float* weight, const float* bias, size_t begin, size_t end,
                              View<float, 2> out);

}  // namespace syrinx::kernels
