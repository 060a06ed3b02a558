#include "nn/lstm.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/lstm_cell.h"

namespace syrinx::nn {
namespace {

// Steps of a job where others may have the team between jobs: a millisecond or two.
constexpr size_t kJobSteps = 64;

// The state of one direction between two steps, and its scratch.  `hidden` is a copy of the last output, because a
// row of `out` belongs to both directions.
struct Direction {
  Direction(const Lstm& w, int index, std::span<std::byte> scratch)
      : recurrent(w.recurrent[static_cast<size_t>(index)]), index(index) {
    const size_t padded = recurrent.padded_columns(), width = round_up(w.width, 32);
    z = reinterpret_cast<float*>(scratch.data());
    cell = z + padded;
    hidden = cell + width;
    rest = scratch.subspan((padded + 2 * width) * sizeof(float));
  }
  static size_t bytes(const Lstm& w) {
    return (w.recurrent[0].padded_columns() + 2 * round_up(w.width, 32)) * sizeof(float) +
           kernels::gemv_scratch_bytes(w.recurrent[0]);
  }

  const PackedMatrix& recurrent;
  const int index;
  float *z, *cell, *hidden;
  std::span<std::byte> rest;
};

// Some steps of one direction; the first one begins with zeros.
void run_direction(const Lstm& w, const Direction& d, Range some, std::span<const int32_t> rows,
                   View<const float, 2> gates, View<float, 2> out) {
  const size_t h = w.width, steps = out.extent(0), offset = static_cast<size_t>(d.index) * 4 * h;
  if (some.begin == 0) std::fill_n(d.cell, 2 * round_up(h, 32), 0.0f);
  for (size_t i = some.begin; i < some.end; ++i) {
    const size_t t = d.index == 0 ? i : steps - 1 - i;
    const size_t row = rows.empty() ? t : static_cast<size_t>(rows[t]);
    kernels::gemv(d.recurrent, d.hidden, gates.row(row) + offset, d.z, {0, d.recurrent.panel_count()}, d.rest);
    kernels::lstm_cell({d.z, 4 * h}, {d.cell, h}, {d.hidden, h});
    std::copy_n(d.hidden, h, out.row(t) + static_cast<size_t>(d.index) * h);
  }
}

}  // namespace

void lstm(Runner& runner, const Lstm& w, View<const float, 2> x, std::span<const int32_t> rows, View<float, 2> gates,
          View<float, 2> out) {
  SYRINX_CHECK(out.extent(1) == 2 * w.width && gates.extent(0) == x.extent(0));
  runner.linear(w.input, x, gates);
  const size_t bytes = Direction::bytes(w), steps = out.extent(0), at_once = runner.cut() ? kJobSteps : steps;
  for (int member = 0; member < runner.team().size(); ++member) runner.scratch(member, bytes);
  const int members = std::min(2, runner.team().size());
  for (int first = 0; first < 2; first += members) {
    for (size_t step = 0; step < steps; step += at_once) {
      runner.team().run([&](int member) {
        if (member >= members) return;
        const Direction direction(w, first + member, runner.scratch(member, bytes));
        run_direction(w, direction, {step, std::min(step + at_once, steps)}, rows, gates, out);
      });
      runner.between();
    }
  }
}

}  // namespace syrinx::nn
