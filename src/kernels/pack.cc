#include "kernels/pack.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "base/check.h"

namespace syrinx::kernels {

OwnedMatrix make_matrix(const MatrixShape& shape, PanelType type, std::span<const float> bias) {
  OwnedMatrix m;
  m.view.type = type;
  m.view.columns = shape.columns;
  m.view.channels = shape.channels;
  m.view.taps = shape.taps;
  m.panels = Buffer<std::byte>(m.view.panel_count() * m.view.panel_bytes());
  prefer_huge_pages(m.panels.data(), m.panels.size());
  m.bias = Buffer<float>(m.view.padded_columns());
  std::copy(bias.begin(), bias.end(), m.bias.data());
  m.view.panels = m.panels.data();
  m.view.bias = m.bias.data();
  if (m.view.is_int8() || type == PanelType::kInt16) {
    m.scale = Buffer<float>(m.view.padded_columns());
    m.column_sum = Buffer<int32_t>(m.view.padded_columns());
    m.view.scale = m.scale.data();
    m.view.column_sum = m.column_sum.data();
  }
  return m;
}

namespace {

// Index of (column n, tap t, channel k) in the int8 panels.
size_t int8_index(const PackedMatrix& m, size_t n, size_t t, size_t k) {
  const size_t depth = t * m.depth() + k;
  return (n / kPanelColumns) * m.panel_elements() + depth / kDepthGroup * kPanelColumns * kDepthGroup +
         n % kPanelColumns * kDepthGroup + depth % kDepthGroup;
}

}  // namespace

Buffer<std::byte> gather_panels(std::span<OwnedMatrix* const> matrices) {
  size_t bytes = 0;
  for (const OwnedMatrix* m : matrices) bytes += round_up(m->panels.size(), 64);
  Buffer<std::byte> panels(bytes);
  prefer_huge_pages(panels.data(), bytes);
  std::byte* at = panels.data();
  for (OwnedMatrix* m : matrices) {
    if (m->panels.size() == 0) continue;
    std::copy(m->panels.begin(), m->panels.end(), at);
    m->view.panels = at;
    at += round_up(m->panels.size(), 64);
    m->panels = {};
  }
  return panels;
}

OwnedMatrix pack_f32(const MatrixShape& shape, const WeightAt& weight, std::span<const float> bias) {
  OwnedMatrix m = make_matrix(shape, PanelType::kF32, bias);
  auto* const panels = reinterpret_cast<float*>(m.panels.data());
  for (size_t n = 0; n < shape.columns; ++n) {
    for (size_t t = 0; t < shape.taps; ++t) {
      for (size_t k = 0; k < shape.channels; ++k) {
        const size_t row = t * m.view.depth() + k;
        panels[n / kPanelColumns * m.view.panel_elements() + row * kPanelColumns + n % kPanelColumns] = weight(n, k, t);
      }
    }
  }
  return m;
}

OwnedMatrix pack_exact(const MatrixShape& shape, const WeightAt& weight, std::span<const float> bias) {
  OwnedMatrix m = make_matrix(shape, PanelType::kBf16, bias);
  auto* const panels = reinterpret_cast<uint16_t*>(m.panels.data());
  for (size_t n = 0; n < shape.columns; ++n) {
    for (size_t t = 0; t < shape.taps; ++t) {
      for (size_t k = 0; k < shape.channels; ++k) {
        const auto bits = std::bit_cast<uint32_t>(weight(n, k, t));
        if ((bits & 0xFFFFu) != 0) return pack_f32(shape, weight, bias);
        const size_t depth = t * m.view.depth() + k;
        panels[n / kPanelColumns * m.view.panel_elements() + depth / 2 * 2 * kPanelColumns + n % kPanelColumns * 2 +
               depth % 2] = static_cast<uint16_t>(bits >> 16);
      }
    }
  }
  return m;
}

OwnedMatrix pack_int8(const MatrixShape& shape, const WeightAt& weight, std::span<const float> bias) {
  std::vector<float> scale(shape.columns);
  for (size_t n = 0; n < shape.columns; ++n) {
    float most = 0.0f;
    for (size_t t = 0; t < shape.taps; ++t)
      for (size_t k = 0; k < shape.channels; ++k) most = std::max(most, std::fabs(weight(n, k, t)));
    scale[n] = most > 1e-30f ? most / 63.0f : 1.0f;
  }
  const auto quantised = [&](size_t n, size_t k, size_t t) {
    return static_cast<int8_t>(std::lrint(std::clamp(weight(n, k, t) / scale[n], -63.0f, 63.0f)));
  };
  return pack_quantised(shape, quantised, scale, 0, bias);
}

OwnedMatrix pack_quantised(const MatrixShape& shape, const QuantisedAt& weight, std::span<const float> scale, int zero,
                           std::span<const float> bias) {
  OwnedMatrix m = make_matrix(shape, PanelType::kInt8, bias);
  m.view.zero = zero;
  auto* const panels = reinterpret_cast<int8_t*>(m.panels.data());
  // Padding equals the zero point, so that it adds nothing whatever the activation is.
  std::fill_n(panels, m.panels.size(), static_cast<int8_t>(zero));
  for (size_t n = 0; n < shape.columns; ++n) {
    m.scale[n] = scale.size() == 1 ? scale[0] : scale[n];
    int32_t sum = 0;
    for (size_t t = 0; t < shape.taps; ++t) {
      for (size_t k = 0; k < shape.channels; ++k) {
        const int8_t q = weight(n, k, t);
        SYRINX_DCHECK(q >= -64 && q <= 64, "weight {} does not fit 7 bits", q);
        panels[int8_index(m.view, n, t, k)] = q;
        sum += q - zero;
      }
    }
    m.column_sum[n] = sum;
  }
  return m;
}

}  // namespace syrinx::kernels
