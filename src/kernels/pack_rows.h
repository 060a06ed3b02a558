// Packing matrices of one tap straight from the rows of a checkpoint, a panel at a time on several threads: what pack.h
// does with a function an element, for models of 100 million weights.  Load time only; allocates.
#pragma once

#include <span>

#include "base/thread_team.h"
#include "kernels/pack.h"
#include "tensor/dtype.h"

namespace syrinx::kernels {

// Some output columns of a matrix, row-major [columns, channels] as a checkpoint stores them; any alignment.
struct StoredRows {
  std::span<const std::byte> bytes;
  DType dtype = DType::kF32;  // f32, f16 or bf16, all finite
  size_t columns = 0;
};

// The columns of `parts` stand side by side.  An empty bias is zero.  kInt8: as pack_int8.  kInt8Symmetric: to
// [-127, 127], one scale a column.  kBf16: rounded to nearest.  kInt16: of a
// tap or of taps one behind the other, to what int32 holds (packed_matrix.h), one scale a column.  kInt4: to [-8, 7]
// with the scale, in bf16, that loses least in each group.  kInt8Blocks: to [-127, 127], the scale of a block in f16.
// kInt4Blocks: to [0, 15], with the scale and offset, in f16, that lose least of a few.
OwnedMatrix pack_rows(PanelType type, size_t channels, std::span<const StoredRows> parts, std::span<const float> bias,
                      ThreadTeam& team);

}  // namespace syrinx::kernels
