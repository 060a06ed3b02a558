// Reads a decoder's weights out of a checkpoint by names that are data.
#include <numeric>
#include <span>

#include "kernels/pack_rows.h"
#include "nn/decoder_weights.h"
#include "nn/weight_reader.h"

namespace syrinx::nn {
namespace {

// Rows of fewer numbers have too few to even out what 4 bits lose.
constexpr size_t kInt4Width = 1024;

std::string numbered(std::string name, size_t layer) {
  const size_t at = name.find("{}");
  return at == std::string::npos ? name : name.replace(at, 2, std::to_string(layer));
}
void number(DecoderNames::Norm& norm, size_t layer) {
  for (std::string* name : {&norm.gamma, &norm.beta}) *name = numbered(*name, layer);
}
void number(DecoderNames::Linear& linear, size_t layer) {
  for (std::string* name : {&linear.weight, &linear.bias, &linear.key}) *name = numbered(*name, layer);
}
class BlockReader {
 public:
  BlockReader(WeightReader& reader, const DecoderConfig& shape, const DecoderNames& names, const DecoderTypes& types)
      : reader_(reader), c_(shape), names_(names), types_(types) {}

  DecoderBlock read() {
    DecoderBlock block;
    block.before = norm(names_.before);
    block.after = norm(names_.after);
    block.in = query_key_value();
    block.out = matrix(types_.attention, {&names_.out, 1}, {c_.width}, c_.query_width());
    if (c_.cross) block.cross = cross();
    block.up = up();
    block.down = matrix(types_.down, {&names_.down, 1}, {c_.width}, c_.hidden);
    if (c_.head_norm) {
      block.query_norm = head_norm(names_.query_norm);
      block.key_norm = head_norm(names_.key_norm);
    }
    if (c_.layer_scale) {
      block.attention_scale = scale(names_.attention_scale);
      block.mlp_scale = scale(names_.mlp_scale);
    }
    return block;
  }

 private:
  using Linear = DecoderNames::Linear;

  NormWeights norm(const DecoderNames::Norm& name) {
    NormWeights read{reader_.values(name.gamma, {c_.width}), {}};
    if (!name.beta.empty()) read.beta = reader_.values(name.beta, {c_.width});
    return read;
  }
  std::vector<float> head_norm(const std::string& name) {
    std::vector<float> gamma = reader_.values(name, {c_.head_size});
    if (names_.half_split && !gamma.empty()) interleave_halves(gamma, c_.head_size, 1);
    return gamma;
  }
  std::vector<float> scale(const std::string& name) {
    std::vector<float> read = reader_.values(name, {c_.width});
    read.resize(round_up(c_.width, kPanelColumns));
    return read;
  }

  static const std::string& key_of(const Linear& name) { return name.key.empty() ? name.weight : name.key; }

  // Parts of these columns side by side; one part may hold all of them.
  std::vector<WeightReader::Columns> parts_of(std::span<const Linear> names, std::vector<size_t> columns) const {
    if (names.size() == 1) columns = {std::accumulate(columns.begin(), columns.end(), size_t{0})};
    std::vector<WeightReader::Columns> parts;
    for (size_t i = 0; i < names.size(); ++i)
      parts.push_back({.weight = names[i].weight, .bias = names[i].bias, .columns = columns[i]});
    return parts;
  }
  kernels::OwnedMatrix matrix(PanelType type, std::span<const Linear> names, const std::vector<size_t>& columns,
                              size_t channels) {
    return reader_.matrix(key_of(names.front()), type, parts_of(names, columns), channels);
  }

  // Rows and biases of the parts one behind the other.
  WeightReader::Made joined(std::span<const WeightReader::Columns> parts, size_t channels) {
    WeightReader::Made made;
    for (const WeightReader::Columns& part : parts) {
      const std::vector<float> rows = reader_.values(part.weight, {part.columns, channels});
      const std::vector<float> bias =
          part.bias.empty() ? std::vector<float>(part.columns) : reader_.values(part.bias, {part.columns});
      made.rows.insert(made.rows.end(), rows.begin(), rows.end());
      made.bias.insert(made.bias.end(), bias.begin(), bias.end());
    }
    return made;
  }
  void know(std::span<const WeightReader::Columns> parts) {
    for (const WeightReader::Columns& part : parts) {
      reader_.know(part.weight);
      if (!part.bias.empty()) reader_.know(part.bias);
    }
  }

  kernels::OwnedMatrix query_key_value() {
    const std::vector<size_t> columns = {c_.query_width(), c_.key_width(), c_.key_width()};
    if (!names_.half_split) return matrix(types_.attention, names_.in, columns, c_.width);
    const std::vector<WeightReader::Columns> parts = parts_of(names_.in, columns);
    know(parts);
    const size_t turned = c_.query_width() + c_.key_width(), all = turned + c_.key_width();
    return reader_.made(key_of(names_.in.front()) + "#halves", types_.attention, {.columns = all, .channels = c_.width},
                        [&] {
                          WeightReader::Made made = joined(parts, c_.width);
                          if (made.rows.size() != all * c_.width || made.bias.size() != all) return made;
                          interleave_halves(std::span(made.rows).first(turned * c_.width), c_.head_size, c_.width);
                          interleave_halves(std::span(made.bias).first(turned), c_.head_size, 1);
                          return made;
                        });
  }

  kernels::OwnedMatrix up() {
    if (c_.mlp != Mlp::kSwiGlu) return matrix(types_.up, {&names_.up, 1}, {c_.hidden}, c_.width);
    const std::vector<WeightReader::Columns> gate = parts_of({&names_.gate, 1}, {c_.hidden});
    const std::vector<WeightReader::Columns> value = parts_of({&names_.up, 1}, {c_.hidden});
    know(gate);
    know(value);
    const size_t columns = 2 * round_up(c_.hidden, kPanelColumns);
    return reader_.made(key_of(names_.gate) + "#panels", types_.up, {.columns = columns, .channels = c_.width}, [&] {
      const WeightReader::Made gates = joined(gate, c_.width), values = joined(value, c_.width);
      for (const WeightReader::Made* part : {&gates, &values})
        if (part->rows.size() != c_.hidden * c_.width || part->bias.size() != c_.hidden) return WeightReader::Made();
      return WeightReader::Made{.rows = interleave_panels(gates.rows, values.rows, c_.width),
                                .bias = interleave_panels(gates.bias, values.bias, 1)};
    });
  }

  CrossBlock cross() {
    const size_t heard = c_.cross_width == 0 ? c_.width : c_.cross_width;
    CrossBlock block;
    block.norm = norm(names_.cross_norm);
    block.query = matrix(types_.attention, {&names_.cross_query, 1}, {c_.query_width()}, c_.width);
    block.key_value = matrix(types_.attention, names_.cross_key_value, {c_.query_width(), c_.query_width()}, heard);
    block.out = matrix(types_.attention, {&names_.cross_out, 1}, {c_.width}, c_.query_width());
    return block;
  }

  WeightReader& reader_;
  const DecoderConfig& c_;
  const DecoderNames& names_;
  const DecoderTypes& types_;
};

}  // namespace

DecoderNames numbered(DecoderNames names, size_t layer) {
  for (DecoderNames::Norm* norm : {&names.before, &names.after, &names.cross_norm}) number(*norm, layer);
  for (DecoderNames::Linear* linear :
       {&names.out, &names.gate, &names.up, &names.down, &names.cross_query, &names.cross_out})
    number(*linear, layer);
  for (auto* parts : {&names.in, &names.cross_key_value})
    for (DecoderNames::Linear& part : *parts) number(part, layer);
  for (std::string* name : {&names.query_norm, &names.key_norm, &names.attention_scale, &names.mlp_scale})
    *name = numbered(*name, layer);
  return names;
}

DecoderTypes decoder_types(Precision precision, size_t width) {
  const PanelType narrow = panel_type(precision);
  if (precision != Precision::kInt4) return {.attention = narrow, .up = narrow, .down = narrow};
  return {.attention = narrow, .up = PanelType::kInt4, .down = width < kInt4Width ? narrow : PanelType::kInt4};
}

DecoderWeights DecoderWeights::load(WeightReader& reader, const DecoderConfig& shape, const DecoderNames& names,
                                    Precision precision) {
  return load(
      reader, shape, [&](size_t layer) { return numbered(names, layer); }, decoder_types(precision, shape.width));
}

DecoderWeights DecoderWeights::load(WeightReader& reader, const DecoderConfig& shape,
                                    const std::function<DecoderNames(size_t)>& names, const DecoderTypes& types) {
  DecoderWeights weights;
  weights.shape = shape;
  for (size_t i = 0; i < shape.layers; ++i) {
    const DecoderNames own = names(i);
    weights.layers.push_back(BlockReader(reader, weights.shape, own, types).read());
  }
  weights.set_frequencies();
  return weights;
}

}  // namespace syrinx::nn
