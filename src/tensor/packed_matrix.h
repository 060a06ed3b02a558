// A matrix packed for streaming: panels of 32 output columns, each panel strictly sequential in the order in which the
// kernel reads it.  A view: the bytes belong to a PackedFile (or to the buffers of a test).
//
//   f32:  [panels][taps * depth][32]
//   bf16: [panels][taps * depth / 2][32][2]   two consecutive depths of a column side by side, for dot instructions
//   int8: [panels][taps * depth / 4][32][4]   four consecutive depths of a column side by side, for dot instructions
//
// depth is the input channels of one tap rounded up to 4; what is padded is zero.  Columns are padded to whole panels
// with weights that give exactly zero.
#pragma once

#include <cstddef>
#include <cstdint>

namespace syrinx {

inline constexpr size_t kPanelColumns = 32;
inline constexpr size_t kDepthGroup = 4;

constexpr size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

enum class PanelType : uint32_t { kF32 = 0, kInt8 = 1, kBf16 = 2 };
constexpr size_t panel_type_bytes(PanelType type) {
  return type == PanelType::kF32 ? 4 : type == PanelType::kBf16 ? 2 : 1;
}

struct PackedMatrix {
  PanelType type = PanelType::kF32;
  size_t columns = 0;   // output channels
  size_t channels = 0;  // input channels of a tap, before padding
  size_t taps = 1;
  const void* panels = nullptr;
  const float* bias = nullptr;          // [padded_columns]; never null once packed
  const float* scale = nullptr;         // int8: [padded_columns], real weight = scale * (q - zero)
  const int32_t* column_sum = nullptr;  // int8: [padded_columns], sum of (q - zero) over taps and depth
  int32_t zero = 0;                     // int8: zero point of the weights; q and zero lie in [-64, 64]
  bool fine = false;                    // int8, one tap: activations go through in two bytes, 16 bits in all

  size_t depth() const { return round_up(channels, kDepthGroup); }
  size_t panel_count() const { return (columns + kPanelColumns - 1) / kPanelColumns; }
  size_t padded_columns() const { return panel_count() * kPanelColumns; }
  size_t panel_elements() const { return taps * depth() * kPanelColumns; }
  size_t panel_bytes() const { return panel_elements() * panel_type_bytes(type); }
};

}  // namespace syrinx
