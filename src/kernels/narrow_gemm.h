// y = x W + b for the narrow matrix types (kBf16, kInt8Symmetric, kInt4 and blocks; one tap), from one row to a
// prompt's hundred. One row is bound by memory, so the panels are read once, in order, prefetched; many rows go through
// blocks of 14.
//
//   bf16   activations rounded to bf16, sums in f32
//   int8   activations in 8 bits with a symmetric scale a row, sums exact in int32
//   int4   the same activations; sums exact in a group of inputs, then scaled and added in f32
//   blocks activations in 8 bits with a symmetric scale a block of 32 inputs; sums exact in a block, then as in int4
//
// Activations are narrowed once, by any number of threads, then multiplied by any number of threads:
//
//   const NarrowRows rows = plan_narrow_rows(matrix, x.extent(0), scratch);   // each thread may make its own view
//   narrow_rows(matrix, x, {0, x.extent(0)}, rows);                           // rows may be shared out
//   narrow_gemm(matrix, rows, addend, y, panels);                             // after all rows are there
//
// A row's values depend on nothing but the row: neither on the other rows nor on how rows and panels are shared out.
// Activations that are not finite make the whole row of y not finite.  Nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/thread_team.h"
#include "tensor/packed_matrix.h"
#include "tensor/view.h"

namespace syrinx::kernels {

constexpr bool is_narrow(PanelType type) {
  return type == PanelType::kBf16 || type == PanelType::kInt8Symmetric || type == PanelType::kInt4 || is_blocks(type);
}

// Activations in the form that this processor multiplies; a view of the caller's scratch.
struct NarrowRows {
  size_t rows = 0;
  std::byte* values = nullptr;  // [rows, stride] bytes
  size_t stride = 0;
  float* scale = nullptr;  // int8 and int4: [rows]; blocks: [rows, blocks]
  // int4: [rows, groups], what the weights' offset of 8 adds to a group's sum, negated.  Blocks: [rows, blocks], a
  // block's sum.
  int32_t* group_term = nullptr;
};

// Bytes of scratch for the activations of so many rows.
size_t narrow_rows_bytes(const PackedMatrix& matrix, size_t rows);
NarrowRows plan_narrow_rows(const PackedMatrix& matrix, size_t rows, std::span<std::byte> scratch);

// Rows [rows.begin, rows.end) of x [N, channels], padded with zeros to a multiple of 32.
void narrow_rows(const PackedMatrix& matrix, View<const float, 2> x, Range rows, const NarrowRows& to);

// Columns of panels [begin, end) of y [N, columns]; addend is [N, columns] or has no data, and may be y.  Rows of y and
// addend have room for whole panels; what lies behind the columns becomes zero, or the addend's.
void narrow_gemm(const PackedMatrix& matrix, const NarrowRows& x, View<const float, 2> addend, View<float, 2> y,
                 Range panels);

}  // namespace syrinx::kernels
