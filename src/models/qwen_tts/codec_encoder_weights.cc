#include "models/qwen_tts/codec_encoder_weights.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace syrinx::qwen_tts {
namespace {

// Numbers that a layer of a piece of the recording may have: several times what the published codec has.
constexpr size_t kMaxLayerNumbers = size_t{1} << 26;

const std::string kName = "encoder.";

mimi::SeanetConfig seanet_config(const CodecEncoderConfig& c) {
  return {.width = c.width,
          .filters = c.filters,
          .kernel = c.kernel,
          .last_kernel = c.last_kernel,
          .residual_kernel = c.residual_kernel,
          .compress = c.compress,
          .residual_layers = c.residual_layers,
          .dilation_base = c.dilation_base,
          .ratios = c.ratios};
}

// Channels double where rows become fewer by a ratio.
size_t largest_layer(const CodecEncoderConfig& c) {
  size_t rows = c.frame_samples(), channels = c.filters, largest = rows * channels;
  for (auto ratio = c.ratios.rbegin(); ratio != c.ratios.rend(); ++ratio) {
    rows /= *ratio;
    channels *= 2;
    largest = std::max(largest, rows * channels);
  }
  return largest;
}

// Full causal attention: the maker's mask has no window, whatever the file's sliding_window says.
nn::DecoderConfig transformer_shape(const CodecTransformer& t) {
  return {.width = t.width,
          .layers = t.layers,
          .heads = t.heads,
          .key_heads = t.key_heads,
          .head_size = t.head_size,
          .hidden = t.hidden,
          .epsilon = t.epsilon,
          .period = t.period,
          .mlp = nn::Mlp::kGelu,
          .products = nn::Products::kF32Rows,
          .layer_scale = true};
}

nn::DecoderNames transformer_names() {
  const std::string layer = kName + "encoder_transformer.layers.{}.";
  const auto norm = [&](const char* part) {
    return nn::DecoderNames::Norm{layer + part + ".weight", layer + part + ".bias"};
  };
  const auto linear = [&](const char* part) {
    return nn::DecoderNames::Linear{.weight = layer + part + ".weight", .bias = ""};
  };
  return {.before = norm("input_layernorm"),
          .after = norm("post_attention_layernorm"),
          .in = {linear("self_attn.q_proj"), linear("self_attn.k_proj"), linear("self_attn.v_proj")},
          .out = linear("self_attn.o_proj"),
          .gate = {},
          .up = linear("mlp.fc1"),
          .down = linear("mlp.fc2"),
          .attention_scale = layer + "self_attn_layer_scale.scale",
          .mlp_scale = layer + "mlp_layer_scale.scale",
          .half_split = true};
}

std::string quantizer(const char* kind) {
  return fmt::format("{}quantizer.{}_residual_vector_quantizer.", kName, kind);
}

class Loader {
 public:
  Loader(nn::WeightReader& reader, const CodecEncoderConfig& config) : reader_(reader), c_(config) {}

  std::vector<mimi::SeanetLayer> seanet() {
    reader_.know_prefix(kName + "encoder.layers.");
    return mimi::SeanetReader(
               [&](const std::string& name, const std::vector<size_t>& dims) { return reader_.values(name, dims); },
               reader_.store(), false)
        .encoder(kName + "encoder.layers", seanet_config(c_));
  }

  kernels::OwnedMatrix downsample() {
    const std::string name = kName + "downsample.conv.weight";
    const size_t width = c_.width, taps = 2 * c_.downsample;
    const kernels::MatrixShape shape{.columns = width, .channels = width, .taps = taps};
    reader_.know(name);
    return reader_.store().get(name, shape, {PanelType::kF32}, [&] {
      const std::vector<float> weight = reader_.values(name, {width, width, taps});
      if (weight.empty()) return kernels::OwnedMatrix();
      return kernels::pack_f32(shape, [&](size_t n, size_t k, size_t t) { return weight[(n * width + k) * taps + t]; },
                               {});
    });
  }

  kernels::OwnedMatrix projections() {
    const std::vector<std::string> names = {quantizer("semantic") + "input_proj.weight",
                                            quantizer("acoustic") + "input_proj.weight"};
    for (const std::string& name : names) reader_.know(name);
    return reader_.made(names.front() + "#both", PanelType::kF32, {.columns = 2 * c_.row_width, .channels = c_.width},
                        [&] {
                          nn::WeightReader::Made made;
                          for (const std::string& name : names) {
                            const std::vector<float> rows = reader_.values(name, {c_.row_width, c_.width, 1});
                            made.rows.insert(made.rows.end(), rows.begin(), rows.end());
                          }
                          made.bias.resize(2 * c_.row_width);
                          return made;
                        });
  }

  // None where a codebook is not as it should be.
  std::optional<nn::Rvq> codebooks(const char* kind, size_t levels) {
    std::vector<std::vector<float>> rows;
    for (size_t i = 0; i < levels; ++i) {
      const std::string name = fmt::format("{}layers.{}.codebook.", quantizer(kind), i);
      const std::vector<float> usage = reader_.values(name + "cluster_usage", {c_.codebook_size});
      const std::vector<float> sums = reader_.values(name + "embed_sum", {c_.codebook_size, c_.row_width});
      if (!usage.empty() && !sums.empty()) rows.push_back(nn::codebook_rows(sums, usage));
    }
    reader_.know_prefix(quantizer(kind));  // its other codebooks, and the way back
    if (rows.size() != levels) return {};
    return nn::Rvq(std::move(rows), c_.row_width, reader_.team());
  }

 private:
  nn::WeightReader& reader_;
  const CodecEncoderConfig& c_;
};

}  // namespace

CodecEncoderWeights CodecEncoderWeights::load(nn::WeightReader& reader, const CodecEncoderConfig& config) {
  CodecEncoderWeights weights;
  weights.config = config;
  if (largest_layer(config) > kMaxLayerNumbers) {
    reader.faults().note(fmt::format("a layer of the encoder makes {} numbers of a frame, at most {} can be run",
                                     largest_layer(config), kMaxLayerNumbers));
    return weights;
  }
  Loader loader(reader, config);
  weights.seanet = loader.seanet();
  weights.transformer =
      nn::DecoderWeights::load(reader, transformer_shape(config.transformer), transformer_names(), Precision::kF32);
  weights.downsample = loader.downsample();
  weights.projections = loader.projections();
  weights.semantic = loader.codebooks("semantic", 1);
  weights.acoustic = loader.codebooks("acoustic", config.used_codebooks - 1);
  return weights;
}

}  // namespace syrinx::qwen_tts
