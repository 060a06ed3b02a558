// y = x W + b (+ addend) on rows of f32, cut among the threads of a runner: one row streams the matrix once (gemv),
// several go through the blocked product.
#pragma once

#include "nn/runner.h"
#include "tensor/packed_matrix.h"
#include "tensor/view.h"

namespace syrinx::nn {

// x [N, channels] -> y [N, columns]; addend is [N, columns] or has no data, and may be y.  Rows of x are padded with
// zeros to a multiple of 32, rows of y and addend have room for whole panels; strides are multiples of 32.  What lies
// behind the columns of y becomes zero, or the addend's.  x may not be y.
void linear(Runner& runner, const PackedMatrix& matrix, View<const float, 2> x, View<const float, 2> addend,
            View<float, 2> y);

// One member's part of the same, inside a job of the team; the whole of y is there after the stage (crew.h).
// reserve_linear() must have been called for the matrix and as many rows.  A member's panels begin at a multiple of
// `grain`.
Share linear_part(Runner& runner, const Part& part, const PackedMatrix& matrix, View<const float, 2> x,
                  View<const float, 2> addend, View<float, 2> y, size_t grain = 1);
// The same for the rows of independent streams: each gets the numbers that it gets alone, to the last bit.
Share stream_linear_part(Runner& runner, const Part& part, const PackedMatrix& matrix, View<const float, 2> x,
                         View<const float, 2> addend, View<float, 2> y, size_t grain = 1);

// Lets the runner's scratch grow to what linear() needs for this matrix and up to `rows` rows.
void reserve_linear(Runner& runner, const PackedMatrix& matrix, size_t rows);

}  // namespace syrinx::nn
