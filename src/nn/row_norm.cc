#include "nn/row_norm.h"

#include <algorithm>

#include "kernels/rms_norm.h"
#include "nn/rows.h"

namespace syrinx::nn {
namespace {

// Numbers that a member norms in the time that a barrier takes.
constexpr size_t kNumbersAlone = 4096;

void norm(const RowNorm::Work& work, Range rows, View<float, 2> to) {
  const View<const float, 2> x(work.x.row(rows.begin), {rows.end - rows.begin, work.x.extent(1)},
                               {work.x.stride(0), 1});
  switch (work.kind) {
    case Norm::kLayer: kernels::layer_norm(x, work.weights->affine(), work.epsilon, to); break;
    case Norm::kRms: kernels::rms_norm(x, work.weights->gamma.data(), work.epsilon, to); break;
  }
  for (size_t n = 0; n < x.extent(0) && !work.gains.empty(); ++n) {
    if (work.gains[rows.begin + n] == nullptr) continue;  // a row of no stream
    const float* const gain = work.gains[rows.begin + n] + work.gain_offset;
    float* const row = to.row(n);
    for (size_t i = 0; i < x.extent(1); ++i) row[i] *= gain[i];
  }
}

}  // namespace

void RowNorm::prepare(size_t rows, size_t width, int members) {
  rows_alone_ = std::clamp<size_t>(kNumbersAlone / width, 1, rows);
  normed_.prepare(std::max(rows, rows_alone_ * static_cast<size_t>(members)), width, kernels::Storage::kF32);
}

void RowNorm::stage(Crew::Seat& seat, const Work& work) {
  if (alone(work.x.extent(0))) return;
  seat.stage([&](const Part& part) {
    const Range own = part.split(work.x.extent(0));
    if (own.begin < own.end) share(own, work);
  });
}

View<const float, 2> RowNorm::share(Range rows, const Work& work) {
  const View<float, 2> own = rows_of(normed_, rows.begin, rows.end);
  norm(work, rows, own);
  return own;
}

View<const float, 2> RowNorm::rows(const Part& part, const Work& work) {
  const size_t count = work.x.extent(0);
  if (!alone(count)) return rows_of(normed_, count);
  const size_t first = static_cast<size_t>(part.member) * rows_alone_;
  const View<float, 2> own = rows_of(normed_, first, first + count);
  norm(work, {0, count}, own);
  return own;
}

}  // namespace syrinx::nn
