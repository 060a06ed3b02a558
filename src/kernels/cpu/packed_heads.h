// Internal: how the keys and values of a head lie in panels of narrow_gemm.h's form, for packed_attention.h and
// relative_head.h.
#pragma once

#include <cstddef>

#include "base/thread_team.h"
#include "kernels/cpu/narrow_block.h"
#include "tensor/packed_matrix.h"

namespace syrinx::kernels {

inline constexpr size_t kLine = 64;

// Panels of keys have 32 keys side by side, `depth` numbers each; panels of values 32 columns, all keys deep.
struct HeadShape {
  HeadShape(size_t keys, size_t width)
      : padded_keys(round_up(keys, kPanelColumns)),
        depth(round_up(width, kDepthGroup)),
        padded_width(round_up(width, kPanelColumns)) {}
  size_t padded_keys, depth, padded_width;

  size_t key_numbers() const { return padded_keys * depth; }
  size_t value_numbers() const { return padded_keys * padded_width; }
  // A row's bytes and one line more, so that rows of a power of two do not meet in one set of the first-level cache.
  size_t query_stride() const { return round_up(padded_width * sizeof(float), kLine) + kLine; }
  size_t weight_stride() const { return padded_keys * sizeof(float) + kLine; }
  size_t score_bytes() const { return padded_keys * kNarrowRows * sizeof(float); }
};

}  // namespace syrinx::kernels
