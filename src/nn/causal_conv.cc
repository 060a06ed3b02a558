#include "nn/causal_conv.h"

#include <algorithm>

namespace syrinx::nn {

kernels::RowConv CausalConv::work_of(const Piece& piece) const {
  const Target& to = piece.to;
  return {.input = piece.in - kept_bytes(),
          .input_type = input_type,
          .rows = piece.rows / stride,
          .row_step = stride * input_width,
          .tap_step = dilation * input_width,
          .output = to.output,
          .activated = to.ready,
          .activated_type = to.type,
          .stride = up * width,
          .residual = to.residual,
          .residual_stride = up * width,
          .scale = to.scale,
          .activation = to.activation,
          .snake = to.snake};
}

void CausalConv::run(const Part& part, const std::byte* in, size_t rows, const Target& to) const {
  const Piece piece{.in = in, .rows = rows, .to = to};
  if (dot.empty()) return run(part, {&piece, 1});
  kernels::row_dot(dot.data(), dot.size(), dot_bias, reinterpret_cast<const float*>(in - kept_bytes()), input_width,
                   to.output, part.split(rows / stride));
}

// Rows are counted through all pieces.
void CausalConv::run(const Part& part, std::span<const Piece> pieces) const {
  size_t count = 0;
  for (const Piece& piece : pieces) count += piece.rows / stride;
  const auto own = kernels::share_row_conv(matrix.view, count, part.rank, part.size);
  // A panel stays in a cache for all pieces.
  const size_t step = pieces.size() == 1 ? std::max<size_t>(own.panels.end - own.panels.begin, 1) : 1;
  for (size_t panel = own.panels.begin; panel < own.panels.end; panel += step) {
    size_t first = 0;
    for (const Piece& piece : pieces) {
      const kernels::RowConv work = work_of(piece);
      const Range rows{std::clamp(own.rows.begin, first, first + work.rows) - first,
                       std::clamp(own.rows.end, first, first + work.rows) - first};
      if (rows.begin < rows.end) kernels::row_conv(matrix.view, work, rows, {panel, panel + step});
      first += work.rows;
    }
  }
}

}  // namespace syrinx::nn
