#include "nn/linear.h"

#include <algorithm>

#include "base/check.h"

namespace syrinx::nn {

void linear(Runner& runner, const PackedMatrix& matrix, View<const float, 2> x, View<const float, 2> addend,
            View<float, 2> y) {
  const size_t rows = x.extent(0);
  SYRINX_CHECK(x.extent(1) == matrix.channels && y.extent(1) == matrix.columns && y.extent(0) == rows,
               "linear {} -> {} on {} -> {}", matrix.channels, matrix.columns, x.extent(1), y.extent(1));
  SYRINX_CHECK(addend.data() == nullptr || (addend.extent(0) == rows && addend.extent(1) == matrix.columns),
               "addend of {} columns", addend.extent(1));
  if (rows == 1) {
    const size_t bytes = kernels::gemv_scratch_bytes(matrix);
    for (int member = 0; member < runner.team().size(); ++member) runner.scratch(member, bytes);
    runner.team().run([&](int member) {
      const Range own = split_range(matrix.panel_count(), member, runner.team().size());
      if (own.begin < own.end)
        kernels::gemv(matrix, x.data(), addend.data(), y.data(), own, runner.scratch(member, bytes));
    });
    return;
  }
  runner.conv(matrix, {.rows = rows}, {.data = x.data(), .rows = rows, .stride = x.stride(0)},
              {.data = y.data(), .stride = y.stride(0), .addend = addend.data(), .addend_stride = addend.stride(0)});
}

void reserve_linear(Runner& runner, const PackedMatrix& matrix, size_t rows) {
  const size_t bytes =
      std::max(kernels::gemv_scratch_bytes(matrix), kernels::conv_scratch_bytes(matrix, {.rows = rows}));
  for (int member = 0; member < runner.team().size(); ++member) runner.scratch(member, bytes);
}

}  // namespace syrinx::nn
