// A table of rows, such as an embedding, in the type in which the file stores them.  A row is widened to f32 when it is
// used: few rows are read, so the table stays in the mapped file where there is one.  Immutable; thread-safe.
#pragma once

#include "kernels/matrix_store.h"
#include "tensor/ggml_type.h"

namespace syrinx::nn {

struct RowTable {
  size_t width = 0;
  GgmlType type = GgmlType::kF32;
  kernels::StoredBytes bytes;  // [rows, width], rows of whole blocks

  size_t row_bytes() const { return width / ggml_block(type).weights * ggml_block(type).bytes; }
  size_t rows() const { return width == 0 ? 0 : bytes.view.size() / row_bytes(); }
  void copy_row(size_t row, float* to) const {
    ggml_to_f32(bytes.view.subspan(row * row_bytes(), row_bytes()), type, to);
  }
};

}  // namespace syrinx::nn
