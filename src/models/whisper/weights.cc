#include "models/whisper/weights.h"

#include <algorithm>
#include <cmath>

#include "kernels/row_conv.h"
#include "nn/weight_reader.h"

namespace syrinx::whisper {
namespace {

using kernels::OwnedMatrix;

constexpr size_t kConvTaps = 3;
constexpr size_t kHeadWidth = 64;  // of every published Whisper, for files that do not tell the number of heads

class Reader : public nn::WeightReader {
 public:
  Reader(const Checkpoint& checkpoint, const Config& config, Precision precision, kernels::MatrixStore& store,
         ThreadTeam* team)
      : WeightReader({.find = [&checkpoint](std::string_view name) { return checkpoint.find(name); }, .team = team},
                     &store),
        checkpoint_(checkpoint),
        config_(config),
        type_(panel_type(precision)),
        conv_type_(precision != Precision::kF32 && kernels::bf16_rows_are_faster() ? PanelType::kBf16
                                                                                   : PanelType::kF32) {}

  NormWeights norm(const NormName& name) { return WeightReader::norm(name.gamma, name.beta, config_.width); }
  LayerWeights encoder_layer(const LayerNames& names) {
    const size_t width = config_.width, hidden = config_.encoder_hidden;
    LayerWeights layer;
    layer.norm = norm(names.self.norm);
    layer.ffn_norm = norm(names.ffn_norm);
    layer.qkv = matrix(names.self.key_value, 3 * width, width);
    layer.out = matrix({names.self.out}, width, width);
    layer.ffn1 = matrix({names.ffn1}, hidden, width);
    layer.ffn2 = matrix({names.ffn2}, width, hidden);
    return layer;
  }
  // `columns` rows of `channels` weights, in equal parts that stand side by side.
  OwnedMatrix matrix(const std::vector<LinearName>& parts, size_t columns, size_t channels) {
    std::vector<Columns> all;
    all.reserve(parts.size());
    for (const LinearName& part : parts)
      all.push_back({.weight = part.weight, .bias = part.bias, .columns = columns / parts.size()});
    return WeightReader::matrix(parts.front().weight, type_, all, channels);
  }
  nn::DecoderTypes decoder_types() const { return {.attention = type_, .up = type_, .down = type_}; }
  OwnedMatrix conv(const LinearName& name, size_t channels);
  RowTable table(const std::string& name, size_t rows) {
    return WeightReader::table(name + "#rows", name, rows, rows, config_.width);
  }

  Status finish() {
    if (faults().empty()) return {};
    return fail(Code::kDataLoss, "'{}' is not a complete Whisper model: {}; download it again", checkpoint_.name(),
                faults().text());
  }

 private:
  Stored stored(const std::string& name, const std::vector<size_t>& dims) override;
  Stored quantised(const TensorRef& tensor, const std::vector<size_t>& dims);
  Stored note(const std::string& fault) {
    faults().note(fault);
    return {};
  }

  const Checkpoint& checkpoint_;
  const Config& config_;
  const PanelType type_, conv_type_;
};

Reader::Stored Reader::stored(const std::string& name, const std::vector<size_t>& dims) {
  const TensorRef* const tensor = find(name);
  if (tensor != nullptr && (tensor->dtype == DType::kI8 || tensor->dtype == DType::kI16))
    return quantised(*tensor, dims);
  if (!faults().accept(name, tensor, dims, "f32, f16, bf16, i8 or i16")) return {};
  return {.rows = {.bytes = tensor->bytes, .dtype = tensor->dtype, .columns = dims.front()}, .widened = {}};
}

// Integers of a quantised file: value = integer / scale.
// With a scale a row (8 bits) or one for all (16 bits), NAME_scale.
Reader::Stored Reader::quantised(const TensorRef& tensor, const std::vector<size_t>& dims) {
  if (tensor.dims != dims)
    return note(fmt::format("{} has the shape {}, not {}", tensor.name, dims_text(tensor.dims), dims_text(dims)));
  const TensorRef* const scales = checkpoint_.find(tensor.name + "_scale");
  const size_t count = scales == nullptr || scales->dtype != DType::kF32 ? 0 : scales->bytes.size() / sizeof(float);
  if (count != 1 && count != dims.front())
    return note(fmt::format("{} is quantised, but {}_scale has no scale a row", tensor.name, tensor.name));
  const std::vector<float> scale = to_f32(scales->bytes, scales->dtype);
  Stored made{.rows = {.bytes = {}, .dtype = DType::kF32, .columns = dims.front()},
              .widened = to_f32(tensor.bytes, tensor.dtype)};
  const size_t width = made.widened.size() / dims.front();
  for (size_t n = 0; n < dims.front(); ++n) {
    const float s = scale[count == 1 ? 0 : n];
    if (!std::isfinite(s) || s == 0.0f) return note(tensor.name + "_scale holds a scale that is zero or not finite");
    for (size_t k = 0; k < width; ++k) made.widened[n * width + k] /= s;
  }
  made.rows.bytes = std::as_bytes(std::span<const float>(made.widened));
  return made;
}

OwnedMatrix Reader::conv(const LinearName& name, size_t channels) {
  const kernels::MatrixShape shape{.columns = config_.width, .channels = channels, .taps = kConvTaps};
  return store().get(name.weight, shape, {conv_type_}, [&]() -> OwnedMatrix {
    std::vector<float> weight = values(name.weight, {shape.columns, channels, kConvTaps});
    const std::vector<float> bias = values(name.bias, {shape.columns});
    if (!faults().empty()) return {};
    const auto at = [&](size_t n, size_t k, size_t t) { return weight[(n * channels + k) * kConvTaps + t]; };
    if (conv_type_ == PanelType::kF32) return kernels::pack_f32(shape, at, bias);
    for (float& value : weight) value = bf16_to_f32(f32_to_bf16(value));
    return kernels::pack_exact(shape, at, bias);
  });
}

// Dimension `axis` of a tensor of that rank.
Result<size_t> dimension(const Checkpoint& checkpoint, const std::string& name, size_t rank, size_t axis) {
  const TensorRef* const tensor = checkpoint.find(name);
  if (tensor == nullptr)
    return fail(Code::kDataLoss, "'{}' is not a Whisper model: it has no tensor {}", checkpoint.name(), name);
  if (tensor->dims.size() != rank)
    return fail(Code::kDataLoss, "'{}' is not a Whisper model: {} has the shape {}", checkpoint.name(), name,
                dims_text(tensor->dims));
  return tensor->dims[axis];
}

nn::DecoderConfig decoder_shape(const Config& c, Precision precision) {
  return {.width = c.width,
          .layers = c.decoder_layers,
          .heads = c.decoder_heads,
          .key_heads = c.decoder_heads,
          .head_size = c.width / c.decoder_heads,
          .hidden = c.decoder_hidden,
          .rotary = nn::Rotary::kNone,
          .mlp = nn::Mlp::kGelu,
          .cross = true,
          .cache = precision == Precision::kF32 ? DType::kF32 : DType::kBF16};
}

nn::DecoderNames decoder_names(const LayerNames& names) {
  const auto norm = [](const NormName& name) { return nn::DecoderNames::Norm{name.gamma, name.beta}; };
  const auto linear = [](const LinearName& name) {
    return nn::DecoderNames::Linear{.weight = name.weight, .bias = name.bias};
  };
  nn::DecoderNames made{.before = norm(names.self.norm),
                        .after = norm(names.ffn_norm),
                        .in = {},
                        .out = linear(names.self.out),
                        .gate = {},
                        .up = linear(names.ffn1),
                        .down = linear(names.ffn2),
                        .cross_norm = norm(names.cross.norm),
                        .cross_query = linear(names.cross.query.front()),
                        .cross_out = linear(names.cross.out)};
  for (const LinearName& part : names.self.key_value) made.in.push_back(linear(part));
  for (const LinearName& part : names.cross.key_value) made.cross_key_value.push_back(linear(part));
  return made;
}

size_t count_layers(const Checkpoint& checkpoint, bool decoder) {
  size_t count = 0;
  while (checkpoint.find(checkpoint.layer(decoder, count).ffn1.weight) != nullptr) ++count;
  return count;
}

}  // namespace

Result<Config> config_of(const Checkpoint& checkpoint) {
  const ModelNames names = checkpoint.names();
  Config c;
  SYRINX_TRY(c.width, dimension(checkpoint, names.conv1.weight, 3, 0));
  SYRINX_TRY(c.mels, dimension(checkpoint, names.conv1.weight, 3, 1));
  SYRINX_TRY(c.audio_positions, dimension(checkpoint, names.encoder_positions, 2, 0));
  SYRINX_TRY(c.text_positions, dimension(checkpoint, names.decoder_positions, 2, 0));
  SYRINX_TRY(c.vocabulary, dimension(checkpoint, names.embedding, 2, 0));
  c.encoder_layers = count_layers(checkpoint, false);
  c.decoder_layers = count_layers(checkpoint, true);
  if (c.encoder_layers > 0) {
    SYRINX_TRY(c.encoder_hidden, dimension(checkpoint, checkpoint.layer(false, 0).ffn1.weight, 2, 0));
  }
  if (c.decoder_layers > 0) {
    SYRINX_TRY(c.decoder_hidden, dimension(checkpoint, checkpoint.layer(true, 0).ffn1.weight, 2, 0));
  }
  const auto usual = static_cast<int64_t>(c.width / kHeadWidth);
  c.encoder_heads = static_cast<size_t>(std::max<int64_t>(0, checkpoint.number("encoder/num_heads", usual)));
  c.decoder_heads = static_cast<size_t>(std::max<int64_t>(0, checkpoint.number("decoder/num_heads", usual)));
  return c;
}

Result<Weights> read_weights(const Checkpoint& checkpoint, const Config& config, Precision precision,
                             kernels::MatrixStore& store, ThreadTeam* team) {
  const ModelNames names = checkpoint.names();
  const size_t width = config.width;
  Reader reader(checkpoint, config, precision, store, team);
  Weights w;
  w.config = config;
  w.precision = precision;
  w.packed = store.file();
  w.conv1 = reader.conv(names.conv1, config.mels);
  w.conv2 = reader.conv(names.conv2, width);
  w.encoder_positions = reader.values(names.encoder_positions, {config.audio_positions, width});
  for (size_t i = 0; i < config.encoder_layers; ++i)
    w.encoder.push_back(reader.encoder_layer(checkpoint.layer(false, i)));
  w.encoder_norm = reader.norm(names.encoder_norm);
  w.embedding = reader.table(names.embedding, config.vocabulary);
  w.decoder_positions = reader.values(names.decoder_positions, {config.text_positions, width});
  w.decoder = nn::DecoderWeights::load(
      reader, decoder_shape(config, precision), [&](size_t i) { return decoder_names(checkpoint.layer(true, i)); },
      reader.decoder_types());
  w.decoder_norm = reader.norm(names.decoder_norm);
  w.output = reader.matrix({{.weight = names.embedding, .bias = ""}}, config.vocabulary, width);
  SYRINX_TRY_VOID(reader.finish());
  return w;
}

}  // namespace syrinx::whisper
