// A table of rows, such as an embedding, in the type in which the file stores them.  A row is widened to f32 when it is
// used: few rows are read, so the table stays in the mapped file where there is one.  Immutable; thread-safe.
#pragma once

#include "kernels/matrix_store.h"
#include "tensor/dtype.h"

namespace syrinx::nn {

struct RowTable {
  size_t width = 0;
  DType dtype = DType::kF32;   // or f16, bf16
  kernels::StoredBytes bytes;  // [rows, width]

  size_t rows() const { return width == 0 ? 0 : bytes.view.size() / (width * dtype_size(dtype)); }
  void copy_row(size_t row, float* to) const {
    const size_t row_bytes = width * dtype_size(dtype);
    floats_to_f32(bytes.view.subspan(row * row_bytes, row_bytes), dtype, to);
  }
};

}  // namespace syrinx::nn
