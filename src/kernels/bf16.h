// Rows of f32 as rows of bf16 and back.  Rows are contiguous, of any stride and alignment; the result's lie `stride`
// numbers apart and do not overlap the others.  Thread-safe, allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/view.h"

namespace syrinx::kernels {

// Rows [M, N] to the nearest bf16, halves to even.  What is not a number stays so; infinities stay, and what rounds
// beyond the largest bf16 becomes one.
void round_rows(View<const float, 2> rows, uint16_t* to, size_t stride);

// Exact.
void widen_rows(View<const uint16_t, 2> rows, float* to, size_t stride);

}  // namespace syrinx::kernels
