#include "models/kokoro/archive.h"

#include <algorithm>
#include <numbers>
#include <numeric>

#include "kernels/pack.h"

namespace syrinx::kokoro {
namespace {

// Header of a packed matrix, so that binding can check it against the recipe.
struct MatrixHead {
  uint32_t type = 0;
  int32_t zero = 0;
  uint64_t columns = 0, channels = 0, taps = 0;
};

size_t product(const std::vector<size_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), size_t{1}, std::multiplies<>());
}

// Columns of one weight: those of a transposed convolution are stride phases of padded channels.
size_t part_columns(const MatrixRecipe& r) {
  return r.layout == WeightLayout::kTransposedConv ? r.kernel / 2 * round_up(r.out, kPanelColumns) : r.out;
}

kernels::MatrixShape packed_shape(const MatrixRecipe& r) {
  const size_t taps = r.layout == WeightLayout::kTransposedConv ? 2 : r.kernel;
  return {.columns = part_columns(r) * r.weights.size(), .channels = r.in, .taps = taps};
}

std::vector<size_t> stored_shape(const MatrixRecipe& r) {
  switch (r.layout) {
    case WeightLayout::kLinear: return {r.out, r.in};
    case WeightLayout::kConv: return {r.out, r.in, r.kernel};
    case WeightLayout::kTransposedConv: return {r.in, r.out, r.kernel};
  }
  return {};
}

// Index into a stored weight of packed (column n of its part, input channel k, tap t), or -1 where nothing is stored.
ptrdiff_t stored_index(const MatrixRecipe& r, size_t n, size_t k, size_t t) {
  if (r.layout != WeightLayout::kTransposedConv) return static_cast<ptrdiff_t>((n * r.in + k) * r.kernel + t);
  // Output stride * i + phase sees input i through tap `phase` and input i - 1 through tap `phase + stride`; the packed
  // tap 0 is the earlier input.
  const size_t width = round_up(r.out, kPanelColumns), phase = n / width, channel = n % width;
  if (channel >= r.out) return -1;
  const size_t tap = t == 0 ? phase + r.kernel / 2 : phase;
  return static_cast<ptrdiff_t>((k * r.out + channel) * r.kernel + tap);
}

// A weight that is not a number must stop here: int8 activations would turn it into an ordinary byte, unseen.
bool all_finite(std::span<const float> values) {
  float sum = 0.0f;
  for (const float v : values) sum += v * 0.0f;
  return sum == 0.0f;
}

std::span<const std::byte> bytes_of(const auto& buffer) { return std::as_bytes(buffer.span()); }

}  // namespace

tl::unexpected<Error> PackArchive::not_finite(const std::string& name) const {
  return fail(Code::kDataLoss, "'{}': weight '{}' holds values that are not finite; the file is damaged",
              checkpoint_.path(), name);
}

Result<std::vector<float>> PackArchive::read_values(const std::string& name, const std::vector<size_t>& shape) const {
  SYRINX_TRY(const StoredWeight stored, checkpoint_.read(name, shape));
  std::vector<float> values = stored.dequantised();
  if (values.size() != product(shape)) return fail(Code::kDataLoss, "'{}' holds {} values", name, values.size());
  if (!all_finite(values)) return not_finite(name);
  return values;
}

Status PackArchive::pack_matrix(const MatrixRecipe& r) const {
  std::vector<StoredWeight> parts;
  std::vector<float> bias(packed_shape(r).columns, 0.0f);
  bool quantised = precision_ == Precision::kInt8 && !r.keep_f32;
  const bool want_int8 = quantised;
  const size_t columns = part_columns(r);
  for (size_t p = 0; p < r.weights.size(); ++p) {
    SYRINX_TRY(StoredWeight part, checkpoint_.read(r.weights[p], stored_shape(r)));
    if (!all_finite(part.f32) || !all_finite(part.scale)) return not_finite(r.weights[p]);
    quantised = quantised && part.quantised() && (p == 0 || part.zero == parts[0].zero) &&
                (r.layout != WeightLayout::kTransposedConv || part.scale.size() == 1);  // its first axis is the input's
    parts.push_back(std::move(part));
    for (const std::string& name : p < r.biases.size() ? r.biases[p] : std::vector<std::string>()) {
      SYRINX_TRY(const std::vector<float> values, read_values(name, {r.out}));
      for (size_t n = 0; n < columns; ++n) {
        const size_t channel = r.layout == WeightLayout::kTransposedConv ? n % round_up(r.out, kPanelColumns) : n;
        if (channel < r.out) bias[p * columns + n] += values[channel];
      }
    }
  }
  kernels::OwnedMatrix packed;
  if (quantised) {
    std::vector<float> scale(packed_shape(r).columns);
    for (size_t n = 0; n < scale.size(); ++n) {
      const StoredWeight& part = parts[n / columns];
      scale[n] = part.scale.size() == 1 ? part.scale[0] : part.scale[n % columns % part.scale.size()];
    }
    const auto at = [&](size_t n, size_t k, size_t t) {
      const ptrdiff_t i = stored_index(r, n % columns, k, t);
      return i < 0 ? static_cast<int8_t>(parts[0].zero) : parts[n / columns].q[static_cast<size_t>(i)];
    };
    packed = kernels::pack_quantised(packed_shape(r), at, scale, parts[0].zero, bias);
  } else {
    std::vector<std::vector<float>> values;
    values.reserve(parts.size());
    for (const StoredWeight& part : parts) values.push_back(part.dequantised());
    const auto at = [&](size_t n, size_t k, size_t t) {
      const ptrdiff_t i = stored_index(r, n % columns, k, t);
      return i < 0 ? 0.0f : values[n / columns][static_cast<size_t>(i)];
    };
    packed = want_int8 ? kernels::pack_int8(packed_shape(r), at, bias) : kernels::pack_f32(packed_shape(r), at, bias);
  }
  const PackedMatrix& m = packed.view;
  const MatrixHead head{static_cast<uint32_t>(m.type), m.zero, m.columns, m.channels, m.taps};
  SYRINX_TRY_VOID(writer_.add_array(r.key, std::span(&head, 1)));
  SYRINX_TRY_VOID(writer_.add(r.key + ".panels", packed.panels.span()));
  SYRINX_TRY_VOID(writer_.add(r.key + ".bias", bytes_of(packed.bias)));
  if (m.type == PanelType::kInt8) {
    SYRINX_TRY_VOID(writer_.add(r.key + ".scale", bytes_of(packed.scale)));
    SYRINX_TRY_VOID(writer_.add(r.key + ".sum", bytes_of(packed.column_sum)));
  }
  return {};
}

void PackArchive::matrix(PackedMatrix&, const MatrixRecipe& recipe) {
  if (status_) keep(pack_matrix(recipe));
}

void PackArchive::values(const float*&, const std::string& name, const std::vector<size_t>& shape, bool pad) {
  if (!status_) return;
  auto values = read_values(name, shape);
  if (!values) return keep(tl::unexpected(values.error()));
  if (pad) {
    const size_t width = shape.back(), padded = round_up(width, kPanelColumns);
    std::vector<float> wide(values->size() / width * padded, 0.0f);
    for (size_t i = 0; i < values->size(); ++i) wide[i / width * padded + i % width] = (*values)[i];
    *values = std::move(wide);
  }
  keep(writer_.add_array<float>(name, *values));
}

void PackArchive::depthwise(const float*&, const std::string& name, size_t channels, size_t taps) {
  if (!status_) return;
  const auto values = read_values(name, {channels, 1, taps});
  if (!values) return keep(tl::unexpected(values.error()));
  const size_t padded = round_up(channels, kPanelColumns);
  std::vector<float> out(taps * padded, 0.0f);
  for (size_t c = 0; c < channels; ++c)
    for (size_t t = 0; t < taps; ++t) out[t * padded + c] = (*values)[c * taps + t];
  keep(writer_.add_array<float>(name, out));
}

void PackArchive::snake(const float*&, const std::string& name, size_t channels) {
  if (!status_) return;
  const auto alpha = read_values(name, {1, channels, 1});
  if (!alpha) return keep(tl::unexpected(alpha.error()));
  const size_t padded = round_up(channels, kPanelColumns);
  std::vector<float> out(2 * padded, 0.0f);
  for (size_t c = 0; c < channels; ++c) {
    out[c] = static_cast<float>((*alpha)[c] / std::numbers::pi);
    out[padded + c] = 1.0f / (*alpha)[c];
  }
  if (!all_finite(out)) return keep(not_finite(name));  // an alpha of zero
  keep(writer_.add_array<float>(name, out));
}

void PackArchive::small(const float*&, const std::string& name, const std::vector<size_t>& shape) {
  if (!status_) return;
  auto values = read_values(name + ".weight", shape);
  if (!values) return keep(tl::unexpected(values.error()));
  const auto bias = read_values(name + ".bias", {1});
  if (!bias) return keep(tl::unexpected(bias.error()));
  values->push_back((*bias)[0]);
  keep(writer_.add_array<float>(name, *values));
}

Status BindArchive::bind_matrix(PackedMatrix& m, const MatrixRecipe& r) const {
  SYRINX_TRY(const std::span<const MatrixHead> head, file_.array<MatrixHead>(r.key));
  const kernels::MatrixShape shape = packed_shape(r);
  if (head.size() != 1 || head[0].columns != shape.columns || head[0].channels != shape.channels ||
      head[0].taps != shape.taps || head[0].type > 1 || head[0].zero < -64 || head[0].zero > 64 ||
      (r.keep_f32 && head[0].type != static_cast<uint32_t>(PanelType::kF32)))
    return fail(Code::kDataLoss, "packed matrix '{}' has another shape", r.key);
  m.type = static_cast<PanelType>(head[0].type);
  m.columns = shape.columns;
  m.channels = shape.channels;
  m.taps = shape.taps;
  m.zero = head[0].zero;
  m.fine = r.fine && m.type == PanelType::kInt8;
  SYRINX_TRY(const std::span<const std::byte> panels, file_.find(r.key + ".panels"));
  SYRINX_TRY(const std::span<const float> bias, file_.array<float>(r.key + ".bias"));
  bool whole = panels.size() == m.panel_count() * m.panel_bytes() && bias.size() == m.padded_columns();
  m.panels = panels.data();
  m.bias = bias.data();
  if (m.type == PanelType::kInt8) {
    SYRINX_TRY(const std::span<const float> scale, file_.array<float>(r.key + ".scale"));
    SYRINX_TRY(const std::span<const int32_t> sum, file_.array<int32_t>(r.key + ".sum"));
    whole = whole && scale.size() == m.padded_columns() && sum.size() == m.padded_columns();
    m.scale = scale.data();
    m.column_sum = sum.data();
  }
  if (!whole) return fail(Code::kDataLoss, "packed matrix '{}' is not whole", r.key);
  return {};
}

void BindArchive::matrix(PackedMatrix& matrix, const MatrixRecipe& recipe) {
  if (status_) keep(bind_matrix(matrix, recipe));
}

void BindArchive::bind_values(const float*& values, const std::string& name, size_t count) {
  if (!status_) return;
  const auto found = file_.array<float>(name);
  if (!found) return keep(tl::unexpected(found.error()));
  if (found->size() != count) return keep(fail(Code::kDataLoss, "packed '{}' holds {} values", name, found->size()));
  values = found->data();
}

void BindArchive::values(const float*& values, const std::string& name, const std::vector<size_t>& shape, bool pad) {
  bind_values(values, name,
              pad ? product(shape) / shape.back() * round_up(shape.back(), kPanelColumns) : product(shape));
}
void BindArchive::depthwise(const float*& values, const std::string& name, size_t channels, size_t taps) {
  bind_values(values, name, taps * round_up(channels, kPanelColumns));
}
void BindArchive::snake(const float*& values, const std::string& name, size_t channels) {
  bind_values(values, name, 2 * round_up(channels, kPanelColumns));
}
void BindArchive::small(const float*& values, const std::string& name, const std::vector<size_t>& shape) {
  bind_values(values, name, product(shape) + 1);
}

}  // namespace syrinx::kokoro
