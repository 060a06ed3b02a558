#include "nn/linear.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/narrow_gemm.h"

namespace syrinx::nn {
namespace {

constexpr size_t kPanelsAtOnce = 4;  // 512 kB of f32 at a depth of 1024

void check(const PackedMatrix& matrix, View<const float, 2> x, View<const float, 2> addend, View<float, 2> y) {
  const size_t rows = x.extent(0);
  SYRINX_CHECK(x.extent(1) == matrix.channels && y.extent(1) == matrix.columns && y.extent(0) == rows,
               "linear {} -> {} on {} -> {}", matrix.channels, matrix.columns, x.extent(1), y.extent(1));
  SYRINX_CHECK(addend.data() == nullptr || (addend.extent(0) == rows && addend.extent(1) == matrix.columns),
               "addend of {} columns", addend.extent(1));
}

// Narrow matrices take rows of any number the same way.  Each member narrows all rows for itself: that costs less than
// a barrier where rows are few, and a few hundredths of the product where they are many.
Share narrow_part(Runner& runner, const Part& part, const PackedMatrix& matrix, View<const float, 2> x,
                  View<const float, 2> addend, View<float, 2> y, size_t grain) {
  const Range own = part.split(matrix.panel_count(), grain);
  const size_t rows = x.extent(0);
  if (own.begin == own.end || rows == 0) return {};
  const kernels::NarrowRows narrow =
      kernels::plan_narrow_rows(matrix, rows, runner.scratch(part.member, kernels::narrow_rows_bytes(matrix, rows)));
  kernels::narrow_rows(matrix, x, {0, rows}, narrow);
  kernels::narrow_gemm(matrix, narrow, addend, y, own);
  return {.rows = {0, rows}, .columns = {own.begin * kPanelColumns, own.end * kPanelColumns}};
}

}  // namespace

void linear(Runner& runner, const PackedMatrix& matrix, View<const float, 2> x, View<const float, 2> addend,
            View<float, 2> y) {
  reserve_linear(runner, matrix, x.extent(0));
  const int size = runner.team().size();
  runner.team().run(
      [&](int member) { linear_part(runner, {.member = member, .rank = member, .size = size}, matrix, x, addend, y); });
}

Share linear_part(Runner& runner, const Part& part, const PackedMatrix& matrix, View<const float, 2> x,
                  View<const float, 2> addend, View<float, 2> y, size_t grain) {
  const size_t rows = x.extent(0);
  if (rows == 1) return stream_linear_part(runner, part, matrix, x, addend, y, grain);
  check(matrix, x, addend, y);
  if (kernels::is_narrow(matrix.type)) return narrow_part(runner, part, matrix, x, addend, y, grain);
  return runner.conv_part(
      part, matrix, {.rows = rows}, {.data = x.data(), .rows = rows, .stride = x.stride(0)},
      {.data = y.data(), .stride = y.stride(0), .addend = addend.data(), .addend_stride = addend.stride(0)}, grain);
}

Share stream_linear_part(Runner& runner, const Part& part, const PackedMatrix& matrix, View<const float, 2> x,
                         View<const float, 2> addend, View<float, 2> y, size_t grain) {
  check(matrix, x, addend, y);
  if (kernels::is_narrow(matrix.type)) return narrow_part(runner, part, matrix, x, addend, y, grain);
  const Range own = part.split(matrix.panel_count(), grain);
  if (own.begin == own.end) return {};
  // A few panels at a time, so that they come from memory once for all rows.
  const size_t rows = x.extent(0), step = rows == 1 ? own.end - own.begin : kPanelsAtOnce;
  const std::span<std::byte> scratch = runner.scratch(part.member, kernels::gemv_scratch_bytes(matrix));
  for (size_t first = own.begin; first < own.end; first += step) {
    for (size_t n = 0; n < rows; ++n) {
      kernels::gemv(matrix, x.row(n), addend.data() == nullptr ? nullptr : addend.row(n), y.row(n),
                    {first, std::min(first + step, own.end)}, scratch);
    }
  }
  return {.rows = {0, rows}, .columns = {own.begin * kPanelColumns, own.end * kPanelColumns}};
}

void reserve_linear(Runner& runner, const PackedMatrix& matrix, size_t rows) {
  const size_t bytes = kernels::is_narrow(matrix.type) ? kernels::narrow_rows_bytes(matrix, rows)
                                                       : std::max(kernels::gemv_scratch_bytes(matrix),
                                                                  kernels::conv_scratch_bytes(matrix, {.rows = rows}));
  for (int member = 0; member < runner.team().size(); ++member) runner.scratch(member, bytes);
}

}  // namespace syrinx::nn
