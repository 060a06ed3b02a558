#include "kernels/pack_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/check.h"

namespace syrinx::kernels {
namespace {

// One thread's panel before it is interleaved: its columns as rows of f32, padded with zeros.
struct PanelRows {
  explicit PanelRows(const PackedMatrix& m) : depth(m.depth()), values(kPanelColumns * depth), bytes(depth * 32) {}
  size_t depth;
  Buffer<float> values;  // [32, depth]
  Buffer<int8_t> bytes;  // the same, quantised
};

void load_panel(std::span<const StoredRows> parts, size_t channels, size_t panel, PanelRows& rows) {
  size_t first = 0;  // column of the part
  for (const StoredRows& part : parts) {
    const size_t begin = std::max(first, panel * kPanelColumns);
    const size_t end = std::min(first + part.columns, (panel + 1) * kPanelColumns);
    const size_t row_bytes = channels * dtype_size(part.dtype);
    for (size_t n = begin; n < end; ++n) {
      floats_to_f32(part.bytes.subspan((n - first) * row_bytes, row_bytes), part.dtype,
                    rows.values.data() + n % kPanelColumns * rows.depth);
    }
    first += part.columns;
  }
  for (size_t n = first; n < (panel + 1) * kPanelColumns; ++n)
    std::fill_n(rows.values.data() + n % kPanelColumns * rows.depth, rows.depth, 0.0f);
}

void store_f32(const PanelRows& rows, float* panel) {
  for (size_t k = 0; k < rows.depth; ++k)
    for (size_t n = 0; n < kPanelColumns; ++n) panel[k * kPanelColumns + n] = rows.values[n * rows.depth + k];
}

void store_bf16(const PanelRows& rows, uint16_t* panel) {
  for (size_t k = 0; k < rows.depth; k += 2)
    for (size_t n = 0; n < kPanelColumns; ++n)
      for (size_t i = 0; i < 2; ++i) *panel++ = f32_to_bf16(rows.values[n * rows.depth + k + i]);
}

float largest(const float* values, size_t count) {
  float most = 0.0f;
  for (size_t i = 0; i < count; ++i) most = std::max(most, std::fabs(values[i]));
  return most;
}

// The most that the magnitudes of kInt16Run numbers in a row come to.
double largest_run(const float* values, size_t count) {
  double run = 0.0, most = 0.0;
  for (size_t k = 0; k < count; ++k) {
    run += std::fabs(double{values[k]});
    if (k >= kInt16Run) run -= std::fabs(double{values[k - kInt16Run]});
    most = std::max(most, run);
  }
  return most;
}

// To the nearest whole number, halves to even, for |v| < 2^22: adding 1.5 * 2^23 leaves it in the low bits.
int32_t nearest(float v) { return std::bit_cast<int32_t>(v + 12582912.0f) - std::bit_cast<int32_t>(12582912.0f); }

// One scale a column, weights to [-most, most], none of it lost to a zero point.
void store_int8(PanelRows& rows, float most, int8_t* panel, float* scale, int32_t* column_sum) {
  for (size_t n = 0; n < kPanelColumns; ++n) {
    const float* const row = rows.values.data() + n * rows.depth;
    int8_t* const q = rows.bytes.data() + n * rows.depth;
    const float range = largest(row, rows.depth);
    scale[n] = range > 1e-30f ? range / most : 1.0f;
    int32_t sum = 0;
    for (size_t k = 0; k < rows.depth; ++k) {
      const int32_t whole = nearest(std::clamp(row[k] / scale[n], -most, most));
      q[k] = static_cast<int8_t>(whole);
      sum += whole;
    }
    column_sum[n] = sum;
  }
  for (size_t k = 0; k < rows.depth; k += kDepthGroup) {
    for (size_t n = 0; n < kPanelColumns; ++n, panel += kDepthGroup)
      std::memcpy(panel, rows.bytes.data() + n * rows.depth + k, kDepthGroup);
  }
}

// Taps lie one behind the other, so no run of one is longer than those that are looked at.  Rounding may add a half to
// each weight.
void store_int16(const PanelRows& rows, int16_t* panel, float* scale) {
  constexpr double kMostSum = kInt16RunSum - static_cast<double>(kInt16Run);
  for (size_t n = 0; n < kPanelColumns; ++n) {
    const float* const row = rows.values.data() + n * rows.depth;
    const auto sums = static_cast<float>(largest_run(row, rows.depth) / kMostSum);
    scale[n] = std::max({sums, largest(row, rows.depth) / 32767.0f, 1e-30f});
  }
  for (size_t k = 0; k < rows.depth; k += 2)
    for (size_t n = 0; n < kPanelColumns; ++n)
      for (size_t i = 0; i < 2; ++i)
        *panel++ = static_cast<int16_t>(
            nearest(std::clamp(rows.values[n * rows.depth + k + i] / scale[n], -32767.0f, 32767.0f)));
}

int32_t quantised(float scaled) { return nearest(std::clamp(scaled, -8.0f, 7.0f)); }

// The squared error of a group in 4 bits at this scale, in sums that need not wait for each other.
float group_error(const float* values, float scale) {
  constexpr size_t kSums = 8;
  const float inverse = 1.0f / scale;
  float errors[kSums] = {};
  for (size_t k = 0; k < kInt4Group; k += kSums) {
    for (size_t i = 0; i < kSums; ++i) {
      const float away = values[k + i] - scale * static_cast<float>(quantised(values[k + i] * inverse));
      errors[i] += away * away;
    }
  }
  float sum = 0.0f;
  for (const float error : errors) sum += error;
  return sum;
}

// A group's weights plus 8, and its scale in bf16: of a few, that which loses least.  The largest weight becomes -8,
// the value without a counterpart, or a little more: where the other weights are small it may pay to clip it.
uint16_t quantise_group(const float* values, uint8_t* q) {
  constexpr float kSteps[] = {8.0f, 7.6f, 7.2f, 8.4f, 8.8f, 9.4f};
  float extreme = 0.0f;
  for (size_t k = 0; k < kInt4Group; ++k) extreme = std::fabs(values[k]) > std::fabs(extreme) ? values[k] : extreme;
  uint16_t best = f32_to_bf16(1.0f);
  if (std::fabs(extreme) > 1e-30f) {
    float least = std::numeric_limits<float>::infinity();
    for (const float steps : kSteps) {
      const uint16_t scale = f32_to_bf16(-extreme / steps);
      const float error = group_error(values, bf16_to_f32(scale));
      if (error < least) best = scale;
      least = std::min(least, error);
    }
  }
  const float inverse = 1.0f / bf16_to_f32(best);
  for (size_t k = 0; k < kInt4Group; ++k) q[k] = static_cast<uint8_t>(quantised(values[k] * inverse) + 8);
  return best;
}

void store_int4(PanelRows& rows, std::byte* panel) {
  auto* const quantised = reinterpret_cast<uint8_t*>(rows.bytes.data());  // [32][group]
  for (size_t first = 0; first < rows.depth; first += kInt4Group) {
    for (size_t n = 0; n < kPanelColumns; ++n) {
      const uint16_t scale = quantise_group(rows.values.data() + n * rows.depth + first, quantised + n * kInt4Group);
      std::memcpy(panel + 2 * n, &scale, sizeof scale);
    }
    panel += 2 * kPanelColumns;
    for (size_t k = 0; k < kInt4Group; k += 8) {
      for (size_t n = 0; n < kPanelColumns; ++n) {
        const uint8_t* const q = quantised + n * kInt4Group + k;
        for (size_t i = 0; i < 4; ++i) *panel++ = static_cast<std::byte>(q[i] | (q[i + 4] << 4));
      }
    }
  }
}

void store_f16(float value, std::byte*& to) {
  const uint16_t bits = f32_to_f16(value);
  std::memcpy(to, &bits, sizeof bits);
  to += sizeof bits;
}

// [32][block] of quantised bytes, four inputs of a column side by side.
void store_block_bytes(const uint8_t* q, bool halves, std::byte*& panel) {
  for (size_t k = 0; k < kBlockInputs; k += halves ? 8 : 4)
    for (size_t n = 0; n < kPanelColumns; ++n)
      for (size_t i = 0; i < 4; ++i) {
        const uint8_t* const at = q + n * kBlockInputs + k + i;
        *panel++ = static_cast<std::byte>(halves ? at[0] | at[4] << 4 : at[0]);
      }
}

void store_int8_blocks(PanelRows& rows, std::byte* panel) {
  auto* const q = reinterpret_cast<uint8_t*>(rows.bytes.data());
  for (size_t first = 0; first < rows.depth; first += kBlockInputs) {
    for (size_t n = 0; n < kPanelColumns; ++n) {
      const float* const values = rows.values.data() + n * rows.depth + first;
      const float scale = f16_to_f32(f32_to_f16(largest(values, kBlockInputs) / 127.0f));
      const float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
      for (size_t k = 0; k < kBlockInputs; ++k)
        q[n * kBlockInputs + k] =
            static_cast<uint8_t>(static_cast<int8_t>(nearest(std::clamp(values[k] * inverse, -127.0f, 127.0f))));
      store_f16(scale, panel);
    }
    store_block_bytes(q, false, panel);
  }
}

// A block in 4 bits: value = offset + scale * q, q in 0 to 15, both numbers as f16 holds them.
struct BlockLine {
  float scale = 0.0f, offset = 0.0f;
  static BlockLine of(float scale, float offset) {
    constexpr float kMost = 65504.0f;  // of f16
    const auto kept = [=](float v) { return f16_to_f32(f32_to_f16(std::clamp(v, -kMost, kMost))); };
    return {kept(scale), kept(offset)};
  }
  void quantise(const float* values, float* q) const {
    const float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
    for (size_t k = 0; k < kBlockInputs; ++k)
      q[k] = static_cast<float>(nearest(std::clamp((values[k] - offset) * inverse, 0.0f, 15.0f)));
  }
  float squared_error(const float* values, const float* q) const {
    float sum = 0.0f;
    for (size_t k = 0; k < kBlockInputs; ++k) {
      const float away = values[k] - (offset + scale * q[k]);
      sum += away * away;
    }
    return sum;
  }
  // The line of least squares through (q, values).
  static BlockLine through(const float* values, const float* q) {
    float sum = 0.0f, sum_q = 0.0f, squares = 0.0f, products = 0.0f;
    for (size_t k = 0; k < kBlockInputs; ++k) {
      sum += values[k];
      sum_q += q[k];
      squares += q[k] * q[k];
      products += q[k] * values[k];
    }
    constexpr float kCount = kBlockInputs;
    const float spread = squares - sum_q * sum_q / kCount;
    const float scale = spread > 0.0f ? (products - sum_q * sum / kCount) / spread : 0.0f;
    return of(scale, (sum - scale * sum_q) / kCount);
  }
};

// The line that loses least, and its q, among that from the least value to the largest, one that clips both,
// and what least squares make of each.
BlockLine fit_block(const float* values, float* q) {
  constexpr float kParts[] = {1.0f, 0.88f};
  constexpr int kFits = 2;
  const auto [least, most] = std::minmax_element(values, values + kBlockInputs);
  BlockLine best = BlockLine::of((*most - *least) / 15.0f, *least);
  best.quantise(values, q);
  float error = best.squared_error(values, q);
  const float middle = (*most + *least) / 2;
  for (const float part : kParts) {
    const float scale = part * (*most - *least) / 15.0f;
    BlockLine line = part == 1.0f ? best : BlockLine::of(scale, middle - 7.5f * scale);
    for (int fit = 0; fit <= kFits && error > 0.0f; ++fit) {
      float own[kBlockInputs];
      line.quantise(values, own);
      if (const float found = line.squared_error(values, own); found < error) {
        error = found;
        best = line;
        std::copy_n(own, kBlockInputs, q);
      }
      line = BlockLine::through(values, own);
    }
  }
  return best;
}

void store_int4_blocks(PanelRows& rows, std::byte* panel) {
  auto* const q = reinterpret_cast<uint8_t*>(rows.bytes.data());
  float whole[kBlockInputs];
  for (size_t first = 0; first < rows.depth; first += kBlockInputs) {
    std::byte* offsets = panel + 2 * kPanelColumns;
    for (size_t n = 0; n < kPanelColumns; ++n) {
      const BlockLine line = fit_block(rows.values.data() + n * rows.depth + first, whole);
      for (size_t k = 0; k < kBlockInputs; ++k) q[n * kBlockInputs + k] = static_cast<uint8_t>(whole[k]);
      store_f16(line.scale, panel);
      store_f16(line.offset, offsets);
    }
    panel = offsets;
    store_block_bytes(q, true, panel);
  }
}

}  // namespace

OwnedMatrix pack_rows(PanelType type, size_t channels, std::span<const StoredRows> parts, std::span<const float> bias,
                      ThreadTeam& team) {
  size_t columns = 0;
  for (const StoredRows& part : parts) {
    SYRINX_CHECK(part.bytes.size() == part.columns * channels * dtype_size(part.dtype), "{} bytes of {} x {} {}",
                 part.bytes.size(), part.columns, channels, dtype_name(part.dtype));
    columns += part.columns;
  }
  OwnedMatrix m = make_matrix({.columns = columns, .channels = channels}, type, bias);
  team.run([&](int member) {
    PanelRows rows(m.view);
    const Range own = split_range(m.view.panel_count(), member, team.size());
    for (size_t p = own.begin; p < own.end; ++p) {
      load_panel(parts, channels, p, rows);
      std::byte* const panel = m.panels.data() + p * m.view.panel_bytes();
      switch (type) {
        case PanelType::kF32: store_f32(rows, reinterpret_cast<float*>(panel)); break;
        case PanelType::kBf16: store_bf16(rows, reinterpret_cast<uint16_t*>(panel)); break;
        case PanelType::kInt16:
          store_int16(rows, reinterpret_cast<int16_t*>(panel), m.scale.data() + p * kPanelColumns);
          break;
        case PanelType::kInt8:
        case PanelType::kInt8Symmetric:
          store_int8(rows, type == PanelType::kInt8 ? 63.0f : 127.0f, reinterpret_cast<int8_t*>(panel),
                     m.scale.data() + p * kPanelColumns, m.column_sum.data() + p * kPanelColumns);
          break;
        case PanelType::kInt4: store_int4(rows, panel); break;
        case PanelType::kInt8Blocks: store_int8_blocks(rows, panel); break;
        case PanelType::kInt4Blocks: store_int4_blocks(rows, panel); break;
      }
    }
  });
  return m;
}

}  // namespace syrinx::kernels
