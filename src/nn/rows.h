// Views of some rows and columns of a plane, and copies of rows between the types of a cache and f32.
#pragma once

#include <algorithm>

#include "kernels/bf16.h"
#include "nn/runner.h"

namespace syrinx::nn {

// Rows [begin, end) of a plane.
inline View<float, 2> rows_of(Plane& plane, size_t begin, size_t end) {
  return {plane.f32(begin), {end - begin, plane.channels()}, {plane.stride(), 1}};
}
inline View<float, 2> rows_of(Plane& plane, size_t rows) { return rows_of(plane, 0, rows); }
// `rows` rows from `row` on, of them `columns` columns from `column` on.
inline View<float, 2> columns_of(Plane& plane, size_t row, size_t rows, size_t column, size_t columns) {
  return {plane.f32(row) + column, {rows, columns}, {plane.stride(), 1}};
}

// Copies rows; between f32 and bf16 they are rounded to the nearest or widened.
inline void copy_rows(View<const float, 2> rows, View<float, 2> to) {
  for (size_t n = 0; n < rows.extent(0); ++n) std::copy_n(rows.row(n), rows.extent(1), to.row(n));
}
inline void copy_rows(View<const float, 2> rows, View<uint16_t, 2> to) {
  kernels::round_rows(rows, to.data(), to.stride(0));
}
inline void copy_rows(View<const uint16_t, 2> rows, View<float, 2> to) {
  kernels::widen_rows(rows, to.data(), to.stride(0));
}

// Rows [n, K] in int8, number = scale * int8; of a row that is not finite the scale is no number.
void quantise_rows(View<const float, 2> rows, View<int8_t, 2> to, float* scales);

}  // namespace syrinx::nn
