#include "models/qwen_tts/codec_encoder_weights.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "models/qwen_tts/codec_codebooks.h"

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

  // The rows of so many codebooks; of those that are as they should be.
  std::vector<std::vector<float>> codebooks(const char* kind, size_t levels) {
    std::vector<std::vector<float>> rows;
    for (size_t i = 0; i < levels; ++i) {
      const std::string name = fmt::format("{}layers.{}.codebook.", quantizer(kind), i);
      std::vector<float> read =
          read_codebook(reader_, name + "embed_sum", name + "cluster_usage", c_.codebook_size, c_.row_width);
      if (!read.empty()) rows.push_back(std::move(read));
    }
    return rows;
  }

 private:
  nn::WeightReader& reader_;
  const CodecEncoderConfig& c_;
};

}  // namespace

Result<CodecEncoderWeights> CodecEncoderWeights::load(nn::TensorSource source, const std::string& file,
                                                      const CodecConfig& config, kernels::MatrixStore* store) {
  SYRINX_TRY_VOID(check(config, file));
  const CodecEncoderConfig& c = config.encoder;
  if (largest_layer(c) > kMaxLayerNumbers)
    return fail(Code::kLimitExceeded, "'{}': a layer of the codec's encoder makes {} numbers of a frame, at most {}",
                file, largest_layer(c), kMaxLayerNumbers);
  nn::WeightReader reader(std::move(source), store);
  Loader loader(reader, c);
  std::vector<mimi::SeanetLayer> seanet = loader.seanet();
  nn::DecoderWeights transformer =
      nn::DecoderWeights::load(reader, transformer_shape(c.transformer), transformer_names(), Precision::kF32);
  kernels::OwnedMatrix downsample = loader.downsample(), projections = loader.projections();
  std::vector<std::vector<float>> semantic = loader.codebooks("semantic", 1);
  std::vector<std::vector<float>> acoustic = loader.codebooks("acoustic", c.used_codebooks - 1);
  if (!reader.faults().empty())
    return fail(Code::kDataLoss, "'{}' does not hold the codec that its configuration describes: {}; download it again",
                file, reader.faults().text());
  return CodecEncoderWeights{.config = c,
                             .sample_rate = config.sample_rate,
                             .seanet = std::move(seanet),
                             .transformer = std::move(transformer),
                             .downsample = std::move(downsample),
                             .projections = std::move(projections),
                             .semantic = nn::Rvq(std::move(semantic), c.row_width, reader.team()),
                             .acoustic = nn::Rvq(std::move(acoustic), c.row_width, reader.team()),
                             .packed = store == nullptr ? nullptr : store->file()};
}

}  // namespace syrinx::qwen_tts
