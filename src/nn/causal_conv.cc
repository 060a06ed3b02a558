#include "nn/causal_conv.h"

namespace syrinx::nn {

void CausalConv::run(const Part& part, const std::byte* in, size_t rows, const Target& to) const {
  const size_t count = rows / stride;
  in -= kept_bytes();
  if (!dot.empty()) {
    kernels::row_dot(dot.data(), dot.size(), dot_bias, reinterpret_cast<const float*>(in), input_width, to.output,
                     part.split(count));
    return;
  }
  const kernels::RowConv work{.input = in,
                              .input_type = input_type,
                              .rows = count,
                              .row_step = stride * input_width,
                              .tap_step = dilation * input_width,
                              .output = to.output,
                              .activated = to.ready,
                              .activated_type = to.type,
                              .stride = up * width,
                              .activation = to.activation};
  const auto own = kernels::share_row_conv(matrix.view, count, part.rank, part.size);
  kernels::row_conv(matrix.view, work, own.rows, own.panels);
}

}  // namespace syrinx::nn
