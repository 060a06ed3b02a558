#include "models/qwen_tts/codec_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/pack_rows.h"
#include "models/qwen_tts/codec_codebooks.h"

namespace syrinx::qwen_tts {

using kernels::OwnedMatrix;
using kernels::RowActivation;

namespace {

constexpr size_t kPreKernel = 3, kKernel = 7, kNextWidening = 4;
constexpr size_t kDilations[] = {1, 3, 9};
// exp() of larger exponents is finite, but its product with a row need not be.
constexpr float kMaxSlope = 1e6f;
constexpr size_t kNoElement = std::numeric_limits<size_t>::max();

class Loader {
 public:
  Loader(nn::TensorSource source, const CodecDecoderConfig& config, Precision precision, kernels::MatrixStore* store)
      : reader_(std::move(source), store),
        c_(config),
        type_(precision == Precision::kF32 ? PanelType::kF32 : PanelType::kBf16),
        convolutions_(type_ != PanelType::kF32 && kernels::int16_rows_are_fast() ? PanelType::kInt16 : type_),
        bf16_rows_(type_ == PanelType::kBf16 && kernels::bf16_rows_are_faster()) {}

  nn::WeightReader& reader() { return reader_; }
  // Codebooks with faults are left out.
  std::vector<std::vector<float>> codebooks(const std::string& name, size_t levels);
  nn::DecoderWeights transformer();
  nn::NormWeights norm() { return {reader_.values("decoder.pre_transformer.norm.weight", {c_.transformer.width}), {}}; }
  ConvNextWeights conv_next(size_t number);
  std::vector<CodecLayer> chain();

 private:
  using Before = CodecLayer::Before;
  struct Names {
    std::string weight;
    std::vector<size_t> dims;
  };
  // A matrix of tensors one behind the other, of which index(n, k, t) is the weight of column n, channel k, tap t, or
  // kNoElement: zero.  The bias [bias_columns] is repeated over the columns of each output row.
  template <class Index>
  OwnedMatrix matrix(const std::vector<Names>& tensors, const kernels::MatrixShape& shape, PanelType type,
                     const std::string& bias, size_t bias_columns, const Index& index);
  CodecLayer conv(const std::string& name, size_t out, size_t in, size_t kernel, size_t dilation = 1);
  CodecLayer linear(const std::string& name, size_t out, size_t in) { return layer(name, {out, in}, out, in, 1, 1); }
  CodecLayer layer(const std::string& name, std::vector<size_t> dims, size_t out, size_t in, size_t kernel,
                   size_t dilation);
  CodecLayer transposed(const std::string& name, size_t in, size_t out, size_t kernel, size_t stride);
  CodecLayer quantizer();
  CodecLayer to_samples(const std::string& name, size_t in);
  kernels::RowType rows() const {
    return bf16_rows_ && convolutions_ == PanelType::kBf16 ? kernels::RowType::kBf16 : kernels::RowType::kF32;
  }
  CodecLayer& add(CodecLayer layer, CodecStage stage = CodecStage::kNone, size_t index = 0);
  void snake(const std::string& name, size_t channels);
  void upsampling();
  void decoder();

  nn::WeightReader reader_;
  const CodecDecoderConfig& c_;
  PanelType type_, convolutions_;  // of the transformer, of the chain
  bool bf16_rows_;
  std::vector<CodecLayer> chain_;
  size_t rate_ = 1;  // rows a frame that the last layer of the chain makes
};

std::vector<std::vector<float>> Loader::codebooks(const std::string& name, size_t levels) {
  std::vector<std::vector<float>> rows;
  for (size_t i = 0; i < levels; ++i) {
    const std::string codebook = fmt::format("decoder.quantizer.{}.vq.layers.{}._codebook.", name, i);
    std::vector<float> read = read_codebook(reader_, codebook + "embedding_sum", codebook + "cluster_usage",
                                            c_.codebook_size, c_.row_width());
    if (!read.empty()) rows.push_back(std::move(read));
  }
  return rows;
}

nn::DecoderWeights Loader::transformer() {
  const CodecTransformer& t = c_.transformer;
  const std::string layer = "decoder.pre_transformer.layers.{}.";
  const nn::DecoderConfig shape{.width = t.width,
                                .layers = t.layers,
                                .heads = t.heads,
                                .key_heads = t.key_heads,
                                .head_size = t.head_size,
                                .hidden = t.hidden,
                                .window = t.window,
                                .norm = nn::Norm::kRms,
                                .epsilon = t.epsilon,
                                .period = t.period,
                                .mlp = nn::Mlp::kSwiGlu,
                                .products = bf16_rows_ ? nn::Products::kBf16Rows : nn::Products::kF32Rows,
                                .layer_scale = true,
                                .rows_alone = true};
  const nn::DecoderNames names{.before = {layer + "input_layernorm.weight", ""},
                               .after = {layer + "post_attention_layernorm.weight", ""},
                               .in = {{layer + "self_attn.q_proj.weight", ""},
                                      {layer + "self_attn.k_proj.weight", ""},
                                      {layer + "self_attn.v_proj.weight", ""}},
                               .out = {layer + "self_attn.o_proj.weight", ""},
                               .gate = {layer + "mlp.gate_proj.weight", ""},
                               .up = {layer + "mlp.up_proj.weight", ""},
                               .down = {layer + "mlp.down_proj.weight", ""},
                               .attention_scale = layer + "self_attn_layer_scale.scale",
                               .mlp_scale = layer + "mlp_layer_scale.scale",
                               .half_split = true};
  return nn::DecoderWeights::load(reader_, shape, [&](size_t i) { return nn::numbered(names, i); },
                                  {.attention = type_, .up = type_, .down = type_});
}

ConvNextWeights Loader::conv_next(size_t number) {
  constexpr size_t kTaps = ConvNextWeights::kTaps;
  const std::string name = fmt::format("decoder.upsample.{}.1.", number);
  const std::vector<float> weight = reader_.values(name + "dwconv.conv.weight", {c_.latent, 1, kTaps});
  ConvNextWeights next{.depthwise = std::vector<float>(kTaps * c_.latent),
                       .bias = reader_.values(name + "dwconv.conv.bias", {c_.latent}),
                       .norm = reader_.norm(name + "norm.weight", name + "norm.bias", c_.latent)};
  for (size_t i = 0; i < weight.size(); ++i) next.depthwise[i % kTaps * c_.latent + i / kTaps] = weight[i];
  return next;
}

template <class Index>
OwnedMatrix Loader::matrix(const std::vector<Names>& tensors, const kernels::MatrixShape& shape, PanelType type,
                           const std::string& bias, size_t bias_columns, const Index& index) {
  return reader_.store().get(tensors[0].weight, shape, {type}, [&]() -> OwnedMatrix {
    std::vector<float> weight;
    for (const Names& tensor : tensors) {
      const std::vector<float> read = reader_.values(tensor.weight, tensor.dims);
      weight.insert(weight.end(), read.begin(), read.end());
    }
    const std::vector<float> own = bias.empty() ? std::vector<float>() : reader_.values(bias, {bias_columns});
    if (!reader_.faults().empty()) return {};
    const size_t width = round_up(bias_columns, kPanelColumns);
    std::vector<float> biases(shape.columns);
    for (size_t n = 0; n < shape.columns && !own.empty(); ++n)
      if (n % width < bias_columns) biases[n] = own[n % width];
    // In one tap of all of them, whose panels are those of several.
    const size_t depth = round_up(shape.channels, kDepthGroup);
    std::vector<float> rows(shape.columns * shape.taps * depth);
    for (size_t n = 0; n < shape.columns; ++n)
      for (size_t t = 0; t < shape.taps; ++t)
        for (size_t k = 0; k < shape.channels; ++k)
          if (const size_t element = index(n, k, t); element != kNoElement)
            rows[(n * shape.taps + t) * depth + k] = weight[element];
    const kernels::StoredRows stored{.bytes = std::as_bytes(std::span(rows)), .columns = shape.columns};
    OwnedMatrix packed = kernels::pack_rows(type, shape.taps * depth, {&stored, 1}, biases, reader_.team());
    packed.view.channels = shape.channels;
    packed.view.taps = shape.taps;
    return packed;
  });
}

CodecLayer Loader::layer(const std::string& name, std::vector<size_t> dims, size_t out, size_t in, size_t kernel,
                         size_t dilation) {
  CodecLayer layer{.conv = {.dilation = dilation,
                            .history = (kernel - 1) * dilation,
                            .input_width = round_up(in, kPanelColumns),
                            .width = round_up(out, kPanelColumns),
                            .input_type = rows()}};
  layer.conv.matrix =
      matrix({{name + ".weight", std::move(dims)}}, {.columns = out, .channels = in, .taps = kernel}, convolutions_,
             name + ".bias", out, [=](size_t n, size_t k, size_t t) { return (n * in + k) * kernel + t; });
  return layer;
}

CodecLayer Loader::conv(const std::string& name, size_t out, size_t in, size_t kernel, size_t dilation) {
  return layer(name, {out, in, kernel}, out, in, kernel, dilation);
}

// Output row s t + j is W[j] x[t], and with a kernel of 2 s also W[s + j] x[t - 1]; each of the s rows is padded to
// whole panels.
CodecLayer Loader::transposed(const std::string& name, size_t in, size_t out, size_t kernel, size_t stride) {
  const size_t width = round_up(out, kPanelColumns), taps = kernel / stride;
  CodecLayer layer{.conv = {.up = stride,
                            .history = taps - 1,
                            .input_width = round_up(in, kPanelColumns),
                            .width = width,
                            .input_type = rows()}};
  layer.conv.matrix =
      matrix({{name + ".weight", {in, out, kernel}}}, {.columns = stride * width, .channels = in, .taps = taps},
             convolutions_, name + ".bias", out, [=](size_t n, size_t k, size_t t) {
               const size_t phase = n / width, column = n % width;
               if (column >= out) return kNoElement;
               return (k * out + column) * kernel + (taps - 1 - t) * stride + phase;
             });
  return layer;
}

// Both projections at once: the semantic row and the sum of the acoustic ones stand side by side.
CodecLayer Loader::quantizer() {
  const size_t out = c_.codebook_dim, in = c_.row_width();
  CodecLayer layer{.conv = {.input_width = round_up(2 * in, kPanelColumns), .width = round_up(out, kPanelColumns)}};
  layer.conv.matrix = matrix({{"decoder.quantizer.rvq_first.output_proj.weight", {out, in, 1}},
                              {"decoder.quantizer.rvq_rest.output_proj.weight", {out, in, 1}}},
                             {.columns = out, .channels = 2 * in}, PanelType::kF32, "", out,
                             [=](size_t n, size_t k, size_t) { return k < in ? n * in + k : (out + n) * in + k - in; });
  return layer;
}

CodecLayer Loader::to_samples(const std::string& name, size_t in) {
  CodecLayer layer{.conv = {.history = kKernel - 1, .input_width = round_up(in, kPanelColumns), .width = 1}};
  const std::vector<float> weight = reader_.values(name + ".weight", {1, in, kKernel});
  const std::vector<float> bias = reader_.values(name + ".bias", {1});
  layer.conv.dot.resize(kKernel * layer.conv.input_width);
  for (size_t i = 0; i < weight.size(); ++i)
    layer.conv.dot[i % kKernel * layer.conv.input_width + i / kKernel] = weight[i];
  if (!bias.empty()) layer.conv.dot_bias = bias[0];
  return layer;
}

CodecLayer& Loader::add(CodecLayer layer, CodecStage stage, size_t index) {
  layer.stage = stage;
  layer.stage_index = index;
  layer.rate = rate_;
  rate_ *= layer.conv.up;
  return chain_.emplace_back(std::move(layer));
}

// The activation of the last layer's rows.
void Loader::snake(const std::string& name, size_t channels) {
  CodecLayer& made = chain_.back();
  const std::vector<float> alpha = reader_.values(name + ".alpha", {channels});
  const std::vector<float> beta = reader_.values(name + ".beta", {channels});
  made.activation = RowActivation::kSnakeBeta;
  made.alpha.resize(made.conv.up * made.conv.width);
  made.inverse_beta.resize(made.alpha.size());
  if (alpha.empty() || beta.empty()) return;
  for (size_t i = 0; i < made.alpha.size(); ++i) {
    const size_t channel = i % made.conv.width;
    if (channel >= channels) continue;
    made.alpha[i] = std::exp(alpha[channel]);
    made.inverse_beta[i] = 1.0f / (std::exp(beta[channel]) + 1e-9f);
  }
  const auto bound = [&](const char* part, const std::vector<float>& exponents, const std::vector<float>& slopes) {
    for (size_t i = 0; i < channels; ++i) {
      if (slopes[i] <= kMaxSlope) continue;
      return reader_.faults().note(
          fmt::format("tensor '{}.{}' has an exponent of {}, a slope beyond {}", name, part, exponents[i], kMaxSlope));
    }
  };
  bound("alpha", alpha, made.alpha);
  bound("beta", beta, made.inverse_beta);
}

void Loader::upsampling() {
  for (size_t i = 0; i < c_.ratios.size(); ++i) {
    const std::string name = fmt::format("decoder.upsample.{}.", i);
    add(transposed(name + "0.conv", c_.latent, c_.latent, c_.ratios[i], c_.ratios[i])).keeps = true;
    CodecLayer& wide = add(linear(name + "1.pwconv1", kNextWidening * c_.latent, c_.latent));
    wide.before = Before::kConvNext;
    wide.activation = RowActivation::kGeluErf;
    CodecLayer& narrow =
        add(linear(name + "1.pwconv2", c_.latent, kNextWidening * c_.latent), CodecStage::kUpsample, i);
    narrow.adds = true;
    narrow.scale = reader_.values(name + "1.gamma", {c_.latent});
    narrow.scale.resize(narrow.conv.width);
  }
}

void Loader::decoder() {
  const std::string name = "decoder.decoder.";
  size_t width = c_.width;
  add(conv(name + "0.conv", width, c_.latent, kKernel), CodecStage::kDecoder);
  for (size_t i = 0; i < c_.rates.size(); ++i, width /= 2) {
    const std::string block = fmt::format("{}{}.block.", name, i + 1);
    const size_t out = width / 2;
    snake(block + "0", width);
    add(transposed(block + "1.conv", width, out, 2 * c_.rates[i], c_.rates[i])).begins_block = true;
    for (size_t unit = 0; unit < std::size(kDilations); ++unit) {
      const std::string part = fmt::format("{}{}.", block, 2 + unit);
      snake(part + "act1", out);
      chain_.back().keeps = true;
      add(conv(part + "conv1.conv", out, out, kKernel, kDilations[unit]));
      snake(part + "act2", out);
      add(conv(part + "conv2.conv", out, out, 1)).adds = true;
    }
    chain_.back().stage = CodecStage::kDecoder;
    chain_.back().stage_index = i + 1;
  }
  const size_t last = c_.rates.size() + 1;
  snake(fmt::format("{}{}", name, last), width);
  add(to_samples(fmt::format("{}{}.conv", name, last + 1), width), CodecStage::kDecoder, last + 1);
}

std::vector<CodecLayer> Loader::chain() {
  const std::string transformer = "decoder.pre_transformer.";
  add(quantizer(), CodecStage::kQuantizer);
  add(conv("decoder.pre_conv.conv", c_.latent, c_.codebook_dim, kPreKernel), CodecStage::kPreConv);
  add(linear(transformer + "input_proj", c_.transformer.width, c_.latent));
  add(linear(transformer + "output_proj", c_.latent, c_.transformer.width), CodecStage::kPreTransformer).before =
      Before::kTransformer;
  upsampling();
  decoder();
  return std::move(chain_);
}

// The transformer stands before the layer that reads its result.
Buffer<std::byte> gather(CodecDecoderWeights& weights) {
  std::vector<OwnedMatrix*> matrices;
  for (CodecLayer& layer : weights.chain) {
    if (layer.before == CodecLayer::Before::kTransformer)
      for (nn::DecoderBlock& l : weights.transformer.layers)
        matrices.insert(matrices.end(), {&l.in, &l.out, &l.up, &l.down});
    matrices.push_back(&layer.conv.matrix);
  }
  return kernels::gather_panels(matrices);
}

}  // namespace

Result<CodecDecoderWeights> CodecDecoderWeights::load(nn::TensorSource source, const std::string& file,
                                                      const CodecConfig& config, Precision precision,
                                                      kernels::MatrixStore* store) {
  SYRINX_TRY_VOID(check(config, file));
  const CodecDecoderConfig& c = config.decoder;
  Loader loader(std::move(source), c, precision, store);
  std::vector<std::vector<float>> first = loader.codebooks("rvq_first", 1);
  std::vector<std::vector<float>> rest = loader.codebooks("rvq_rest", c.codebooks - 1);
  nn::DecoderWeights transformer = loader.transformer();
  nn::NormWeights norm = loader.norm();
  std::vector<ConvNextWeights> upsampling;
  for (size_t i = 0; i < c.ratios.size(); ++i) upsampling.push_back(loader.conv_next(i));
  std::vector<CodecLayer> chain = loader.chain();
  if (!loader.reader().faults().empty())
    return fail(Code::kDataLoss, "'{}' does not hold the codec that its configuration describes: {}; download it again",
                file, loader.reader().faults().text());
  CodecDecoderWeights weights{.config = c,
                              .first = {std::move(first), c.row_width()},
                              .rest = {std::move(rest), c.row_width()},
                              .transformer = std::move(transformer),
                              .norm = std::move(norm),
                              .upsampling = std::move(upsampling),
                              .chain = std::move(chain),
                              .packed = store == nullptr ? nullptr : store->file(),
                              .panels = {}};
  weights.panels = gather(weights);
  return weights;
}

bool reads_bf16(const CodecDecoderWeights& weights) {
  return weights.chain[1].conv.input_type == kernels::RowType::kBf16;
}

bool reads_int16(const CodecDecoderWeights& weights) {
  return weights.chain[1].conv.matrix.view.type == PanelType::kInt16;
}

}  // namespace syrinx::qwen_tts
