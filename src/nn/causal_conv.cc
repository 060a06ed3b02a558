#include "nn/causal_conv.h"

#include <algorithm>

#include "base/check.h"

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

size_t CausalConv::scratch_bytes(size_t rows, size_t pieces) const {
  if (matrix.view.type != PanelType::kInt16) return 0;
  const size_t all = rows + pieces * history;
  return round_up(all * sizeof(float), 64) + all * quantised_stride() * sizeof(int16_t);
}

// Rows are counted through all pieces.
void CausalConv::run(const Part& part, std::span<const Piece> pieces, std::span<std::byte> scratch) const {
  size_t count = 0;
  for (const Piece& piece : pieces) count += piece.rows / stride;
  const auto own = kernels::share_row_conv(matrix.view, count, part.rank, part.size);
  const auto rows_of = [&](size_t first, size_t rows) {
    return Range{std::clamp(own.rows.begin, first, first + rows) - first,
                 std::clamp(own.rows.end, first, first + rows) - first};
  };
  const bool is_int16 = matrix.view.type == PanelType::kInt16;
  auto* const scales = reinterpret_cast<float*>(scratch.data());
  int16_t* whole = nullptr;
  if (is_int16 && own.panels.begin < own.panels.end) {
    SYRINX_CHECK(stride == 1 && scratch.size() >= scratch_bytes(count, pieces.size()), "{} bytes of scratch, needs {}",
                 scratch.size(), scratch_bytes(count, pieces.size()));
    whole =
        reinterpret_cast<int16_t*>(scratch.data() + round_up((count + pieces.size() * history) * sizeof(float), 64));
    size_t first = 0, at = 0;  // output rows, input rows of the pieces before
    for (const Piece& piece : pieces) {
      const Range rows = rows_of(first, piece.rows);
      const auto* const in = reinterpret_cast<const float*>(piece.in - kept_bytes()) + rows.begin * input_width;
      if (rows.begin < rows.end)
        kernels::quantise_rows({in, {rows.end - rows.begin + history, matrix.view.channels}, {input_width, 1}},
                               whole + (at + rows.begin) * quantised_stride(), quantised_stride(),
                               scales + at + rows.begin);
      first += piece.rows;
      at += piece.rows + history;
    }
  }
  // A panel stays in a cache for all pieces.
  const size_t step = pieces.size() == 1 ? std::max<size_t>(own.panels.end - own.panels.begin, 1) : 1;
  for (size_t panel = own.panels.begin; panel < own.panels.end; panel += step) {
    size_t first = 0, at = 0;
    for (const Piece& piece : pieces) {
      kernels::RowConv work = work_of(piece);
      if (is_int16) {
        work.input = whole + at * quantised_stride();
        work.input_type = kernels::RowType::kInt16;
        work.row_step = quantised_stride();
        work.tap_step = dilation * quantised_stride();
        work.row_scale = scales + at;
      }
      const Range rows = rows_of(first, work.rows);
      if (rows.begin < rows.end) kernels::row_conv(matrix.view, work, rows, {panel, panel + step});
      first += work.rows;
      at += piece.rows + history;
    }
  }
}

}  // namespace syrinx::nn
