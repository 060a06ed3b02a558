// A matrix packed for streaming: panels of 32 output columns, each panel strictly sequential in the order in which the
// kernel reads it.  A view: the bytes belong to a PackedFile (or to the buffers of a test).
//
//   f32:             [panels][taps * depth][32]
//   bf16:            [panels][taps * depth / 2][32][2]   two consecutive depths of a column side by side
//   int16:           the same, of whole numbers
//   int8:            [panels][taps * depth / 4][32][4]   four consecutive depths of a column, for dot instructions
//   int8, symmetric: the same
//   int4:            [panels][depth / group] of: 32 scales in bf16, then [group / 8][32][4] bytes whose low halves are
//                    four consecutive depths of a column plus 8, and whose high halves are the four behind them
//   int8 blocks:     [panels][depth / 32] of: 32 scales in f16, then int8
//   int4 blocks:     [panels][depth / 32] of: 32 scales and 32 offsets in f16, then nibbles as in int4, from 0 to 15
//
// depth is the input channels of one tap rounded up to 4, in int4 to whole groups, in blocks to whole blocks; what is
// padded is zero (in int4: 8; in int4 blocks near zero, as activations there are exactly zero).  Columns are padded to
// whole panels with weights that give exactly zero.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/precision.h"

namespace syrinx {

inline constexpr size_t kPanelColumns = 32;
inline constexpr size_t kDepthGroup = 4;

constexpr size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

// kInt8: any zero point and 7 bits, so that conv.h can add two products in 16 bits.  kInt8Symmetric: 8 bits without a
// zero point, for narrow_gemm.h, as is kInt4.  kBf16: for narrow_gemm.h, and widened by row_conv.h.  kInt8Blocks,
// kInt4Blocks: for narrow_gemm.h, a scale a block of 32 inputs for weights and for activations, as language models with
// outliers need it; they hold ggml's Q8_0 and Q4_1 (8.5 and 5 bits a weight) as they are where a block uses both ends
// of its numbers.
// kInt16: for row_conv.h, a scale a column, in which no run of depths of a tap can leave int32.
enum class PanelType : uint32_t {
  kF32 = 0,
  kInt8 = 1,
  kBf16 = 2,
  kInt8Symmetric = 3,
  kInt4 = 4,
  kInt8Blocks = 5,
  kInt4Blocks = 6,
  kInt16 = 7,
};
constexpr bool is_blocks(PanelType type) { return type == PanelType::kInt8Blocks || type == PanelType::kInt4Blocks; }

// Panels of a matrix in that precision; kInt4: of one that keeps 8 bits, as some parts of a model need them.
constexpr PanelType panel_type(Precision precision) {
  switch (precision) {
    case Precision::kF32: return PanelType::kF32;
    case Precision::kBf16: return PanelType::kBf16;
    case Precision::kInt8:
    case Precision::kInt4: return PanelType::kInt8Symmetric;
  }
  return PanelType::kF32;
}

// Inputs that share a scale in int4 (docs/journal.md).
inline constexpr size_t kInt4Group = 64;
// kInt16: depths whose products are added up in int32, the largest activation, and the most that the magnitudes of the
// weights of a run come to: 8191 * 262143 < 2^31.
inline constexpr size_t kInt16Run = 256;
inline constexpr int32_t kInt16Activation = 8191, kInt16RunSum = 262143;
// Inputs of a block of kInt8Blocks and kInt4Blocks.
inline constexpr size_t kBlockInputs = 32;

struct PackedMatrix {
  PanelType type = PanelType::kF32;
  size_t columns = 0;   // output channels
  size_t channels = 0;  // input channels of a tap, before padding
  size_t taps = 1;
  const void* panels = nullptr;
  const float* bias = nullptr;          // [padded_columns]; never null once packed
  const float* scale = nullptr;         // int8, int16: [padded_columns], real weight = scale * (q - zero)
  const int32_t* column_sum = nullptr;  // int8: [padded_columns], sum of (q - zero) over taps and depth
  int32_t zero = 0;                     // kInt8: zero point of the weights; q and zero lie in [-64, 64]
  bool fine = false;                    // kInt8, one tap: activations go through in two bytes, 16 bits in all

  bool is_int8() const { return type == PanelType::kInt8 || type == PanelType::kInt8Symmetric; }
  size_t depth() const {
    return round_up(channels, type == PanelType::kInt4 ? kInt4Group : is_blocks(type) ? kBlockInputs : kDepthGroup);
  }
  size_t panel_count() const { return (columns + kPanelColumns - 1) / kPanelColumns; }
  size_t padded_columns() const { return panel_count() * kPanelColumns; }
  size_t panel_elements() const { return taps * depth() * kPanelColumns; }
  size_t panel_bytes() const {
    switch (type) {
      case PanelType::kF32: return panel_elements() * 4;
      case PanelType::kBf16:
      case PanelType::kInt16: return panel_elements() * 2;
      case PanelType::kInt8:
      case PanelType::kInt8Symmetric: return panel_elements();
      case PanelType::kInt4: return panel_elements() / 2 + depth() / kInt4Group * kPanelColumns * 2;
      case PanelType::kInt8Blocks: return panel_elements() + depth() / kBlockInputs * kPanelColumns * 2;
      case PanelType::kInt4Blocks: return panel_elements() / 2 + depth() / kBlockInputs * kPanelColumns * 4;
    }
    return 0;
  }
};

}  // namespace syrinx
