#include "nn/lstm.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/lstm_cell.h"

namespace syrinx::nn {
namespace {

// One direction, step by step.  `hidden` is a copy of the last output, because a row of `out` belongs to both
// directions.
void run_direction(const Lstm& w, int direction, std::span<const int32_t> rows, View<const float, 2> gates,
                   View<float, 2> out, std::span<std::byte> scratch) {
  const size_t h = w.width, steps = out.extent(0);
  const PackedMatrix& recurrent = w.recurrent[static_cast<size_t>(direction)];
  const size_t padded = recurrent.padded_columns();
  float* const z = reinterpret_cast<float*>(scratch.data());
  float* const cell = z + padded;
  float* const hidden = cell + round_up(h, 32);
  const std::span<std::byte> rest = scratch.subspan((padded + 2 * round_up(h, 32)) * sizeof(float));
  std::fill_n(cell, 2 * round_up(h, 32), 0.0f);
  const size_t offset = static_cast<size_t>(direction) * 4 * h;
  for (size_t i = 0; i < steps; ++i) {
    const size_t t = direction == 0 ? i : steps - 1 - i;
    const size_t row = rows.empty() ? t : static_cast<size_t>(rows[t]);
    kernels::gemv(recurrent, hidden, gates.row(row) + offset, z, {0, recurrent.panel_count()}, rest);
    kernels::lstm_cell({z, 4 * h}, {cell, h}, {hidden, h});
    std::copy_n(hidden, h, out.row(t) + static_cast<size_t>(direction) * h);
  }
}

}  // namespace

void lstm(Runner& runner, const Lstm& w, View<const float, 2> x, std::span<const int32_t> rows, View<float, 2> gates,
          View<float, 2> out) {
  SYRINX_CHECK(out.extent(1) == 2 * w.width && gates.extent(0) == x.extent(0));
  runner.linear(w.input, x, gates);
  const size_t bytes = (w.recurrent[0].padded_columns() + 2 * round_up(w.width, 32)) * sizeof(float) +
                       kernels::gemv_scratch_bytes(w.recurrent[0]);
  for (int member = 0; member < runner.team().size(); ++member) runner.scratch(member, bytes);
  runner.team().run([&](int member) {
    const int members = std::min(2, runner.team().size());
    for (int direction = member; direction < 2 && member < members; direction += members)
      run_direction(w, direction, rows, gates, out, runner.scratch(member, bytes));
  });
}

}  // namespace syrinx::nn
