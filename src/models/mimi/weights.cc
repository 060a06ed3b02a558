#include "models/mimi/weights.h"

#include <algorithm>
#include <limits>
#include <span>

#include "tensor/tensor_reader.h"

namespace syrinx::mimi {

using kernels::OwnedMatrix;

namespace {

class Loader {
 public:
  Loader(const Safetensors& tensors, const std::string& file, Precision precision, kernels::MatrixStore* store)
      : reader_(tensors, file),
        narrow_(precision != Precision::kF32 && kernels::bf16_rows_are_faster()),
        store_(store != nullptr ? *store : nothing_) {}
  Status status() const { return reader_.status(); }

  OwnedMatrix linear(const std::string& name, size_t out, size_t in) {
    return matrix(name + ".weight", {out, in}, {.columns = out, .channels = in},
                  [=](size_t n, size_t k, size_t) { return n * in + k; });
  }
  OwnedMatrix quantizer(size_t out, size_t in);
  std::vector<float> upsample(size_t width, size_t taps);
  OwnedMatrix downsample(size_t out, size_t in, size_t taps);
  nn::DecoderWeights transformer(const std::string& name, const nn::TransformerConfig& config);
  std::vector<SeanetLayer> decoder(const SeanetConfig& config);
  std::vector<SeanetLayer> encoder(const SeanetConfig& config);

 private:
  struct ConvShape {
    size_t out = 0, in = 0, kernel = 0, stride = 1, dilation = 1;
  };
  // Packs a tensor of which element index(n, k, t) is the weight of column n, channel k, tap t, or no element: zero.
  static constexpr size_t kNoElement = std::numeric_limits<size_t>::max();
  template <class Index>
  OwnedMatrix matrix(const std::string& tensor, const std::vector<size_t>& dims, const kernels::MatrixShape& shape,
                     const Index& index, std::span<const float> bias = {}) {
    return store_.get(tensor, shape, {PanelType::kF32, PanelType::kBf16}, [&]() -> OwnedMatrix {
      const std::vector<float> weight = reader_.read(tensor, dims);
      if (weight.empty()) return {};
      const auto at = [&](size_t n, size_t k, size_t t) {
        const size_t element = index(n, k, t);
        return element == kNoElement ? 0.0f : weight[element];
      };
      return kernels::pack_exact(shape, at, bias);
    });
  }
  // How what this matrix reads is stored.
  kernels::RowType row_type(const OwnedMatrix& matrix) const {
    return narrow_ && matrix.view.type == PanelType::kBf16 ? kernels::RowType::kBf16 : kernels::RowType::kF32;
  }
  Conv conv(const std::string& name, const ConvShape& shape, bool elu);
  Conv transposed(const std::string& name, size_t in, size_t out, size_t stride);
  Conv from_samples(const std::string& name, size_t out, size_t kernel);
  Conv to_samples(const std::string& name, size_t in, size_t kernel);
  void residual_blocks(const std::string& name, size_t& module, size_t width, const SeanetConfig& config,
                       std::vector<SeanetLayer>& chain);

  TensorReader reader_;
  bool narrow_;  // bf16 is multiplied by bf16
  kernels::MatrixStore nothing_;
  kernels::MatrixStore& store_;
};

// f32: it meets one row, and the vector product takes no bf16.
OwnedMatrix Loader::quantizer(size_t out, size_t in) {
  const std::string name = "mimi.quantizer.output_proj.weight";
  const kernels::MatrixShape shape{.columns = out, .channels = in};
  return store_.get(name, shape, {PanelType::kF32}, [&]() -> OwnedMatrix {
    const std::vector<float> weight = reader_.read(name, {out, in, 1});
    if (weight.empty()) return {};
    return kernels::pack_f32(shape, [&](size_t n, size_t k, size_t) { return weight[n * in + k]; }, {});
  });
}

std::vector<float> Loader::upsample(size_t width, size_t taps) {
  const std::vector<float> weight = reader_.read("mimi.upsample.convtr.convtr.weight", {width, 1, taps});
  if (weight.empty()) return {};
  const size_t stride = round_up(width, kPanelColumns);
  std::vector<float> rows(taps * stride);
  for (size_t t = 0; t < taps; ++t)
    for (size_t c = 0; c < width; ++c) rows[t * stride + c] = weight[c * taps + t];
  return rows;
}

OwnedMatrix Loader::downsample(size_t out, size_t in, size_t taps) {
  return matrix("mimi.downsample.conv.conv.weight", {out, in, taps}, {.columns = out, .channels = in, .taps = taps},
                [=](size_t n, size_t k, size_t t) { return (n * in + k) * taps + t; });
}

Conv Loader::conv(const std::string& name, const ConvShape& s, bool elu) {
  const std::vector<float> bias = reader_.read(name + ".bias", {s.out});
  Conv conv{.stride = s.stride,
            .dilation = s.dilation,
            .elu = elu,
            .history = (s.kernel - 1) * s.dilation + 1 - s.stride,
            .input_width = round_up(s.in, kPanelColumns),
            .width = round_up(s.out, kPanelColumns)};
  conv.matrix = matrix(
      name + ".weight", {s.out, s.in, s.kernel}, {.columns = s.out, .channels = s.in, .taps = s.kernel},
      [=](size_t n, size_t k, size_t t) { return (n * s.in + k) * s.kernel + t; }, bias);
  conv.input_type = row_type(conv.matrix);
  return conv;
}

// Output row s t + j is W[j] x[t] + W[s + j] x[t - 1]; each of the s rows is padded to whole panels.
Conv Loader::transposed(const std::string& name, size_t in, size_t out, size_t stride) {
  const std::vector<float> bias = reader_.read(name + ".bias", {out});
  const size_t width = round_up(out, kPanelColumns);
  Conv conv{.up = stride, .elu = true, .history = 1, .input_width = round_up(in, kPanelColumns), .width = width};
  std::vector<float> biases(stride * width);
  for (size_t j = 0; j < stride; ++j) std::copy(bias.begin(), bias.end(), biases.begin() + j * width);
  const auto index = [=](size_t n, size_t k, size_t t) {
    const size_t phase = n / width, column = n % width;
    if (column >= out) return kNoElement;
    return (k * out + column) * 2 * stride + (t == 0 ? stride : 0) + phase;
  };
  conv.matrix = matrix(name + ".weight", {in, out, 2 * stride}, {.columns = stride * width, .channels = in, .taps = 2},
                       index, biases);
  conv.input_type = row_type(conv.matrix);
  return conv;
}

// Over one channel the taps are what stands side by side: a linear layer of `kernel` samples.
Conv Loader::from_samples(const std::string& name, size_t out, size_t kernel) {
  const std::vector<float> bias = reader_.read(name + ".bias", {out});
  Conv conv{.history = kernel - 1, .input_width = 1, .width = round_up(out, kPanelColumns)};
  conv.matrix = matrix(
      name + ".weight", {out, 1, kernel}, {.columns = out, .channels = kernel},
      [=](size_t n, size_t k, size_t) { return n * kernel + k; }, bias);
  return conv;
}

Conv Loader::to_samples(const std::string& name, size_t in, size_t kernel) {
  const std::vector<float> weight = reader_.read(name + ".weight", {1, in, kernel});
  const std::vector<float> bias = reader_.read(name + ".bias", {1});
  Conv conv{.elu = true, .history = kernel - 1, .input_width = round_up(in, kPanelColumns), .width = 1};
  if (weight.empty() || bias.empty()) return conv;
  conv.dot.resize(kernel * conv.input_width);
  for (size_t t = 0; t < kernel; ++t)
    for (size_t k = 0; k < in; ++k) conv.dot[t * conv.input_width + k] = weight[k * kernel + t];
  conv.dot_bias = bias[0];
  return conv;
}

void Loader::residual_blocks(const std::string& name, size_t& module, size_t width, const SeanetConfig& config,
                             std::vector<SeanetLayer>& chain) {
  const size_t inner = width / config.compress;
  size_t dilation = 1;
  for (size_t j = 0; j < config.residual_layers; ++j, ++module, dilation *= config.dilation_base) {
    const std::string block = fmt::format("{}.{}.block", name, module);
    SeanetLayer layer{.module = module};
    layer.conv = conv(block + ".1.conv",
                      {.out = inner, .in = width, .kernel = config.residual_kernel, .dilation = dilation}, true);
    layer.second = conv(block + ".3.conv", {.out = width, .in = inner, .kernel = 1}, true);
    chain.push_back(std::move(layer));
  }
}

std::vector<SeanetLayer> Loader::decoder(const SeanetConfig& config) {
  const std::string name = "mimi.decoder.model";
  std::vector<SeanetLayer> chain;
  size_t width = config.filters << config.ratios.size(), module = 0;
  const auto add = [&](Conv conv) {
    SeanetLayer layer{.module = module};
    layer.conv = std::move(conv);
    chain.push_back(std::move(layer));
    ++module;
  };
  add(conv(name + ".0.conv", {.out = width, .in = config.width, .kernel = config.kernel}, false));
  for (const size_t ratio : config.ratios) {
    ++module;  // the activation
    add(transposed(fmt::format("{}.{}.convtr", name, module), width, width / 2, ratio));
    width /= 2;
    residual_blocks(name, module, width, config, chain);
  }
  ++module;
  add(to_samples(fmt::format("{}.{}.conv", name, module), width, config.last_kernel));
  return chain;
}

std::vector<SeanetLayer> Loader::encoder(const SeanetConfig& config) {
  const std::string name = "mimi.encoder.model";
  std::vector<SeanetLayer> chain;
  size_t width = config.filters, module = 0;
  const auto add = [&](Conv conv) {
    SeanetLayer layer{.module = module};
    layer.conv = std::move(conv);
    chain.push_back(std::move(layer));
    ++module;
  };
  const auto next = [&] { return fmt::format("{}.{}.conv", name, module); };
  add(from_samples(next(), width, config.kernel));
  for (auto ratio = config.ratios.rbegin(); ratio != config.ratios.rend(); ++ratio) {
    residual_blocks(name, module, width, config, chain);
    ++module;  // the activation
    add(conv(next(), {.out = 2 * width, .in = width, .kernel = 2 * *ratio, .stride = *ratio}, true));
    width *= 2;
  }
  ++module;
  add(conv(next(), {.out = config.width, .in = width, .kernel = config.last_kernel}, true));
  return chain;
}

nn::DecoderWeights Loader::transformer(const std::string& name, const nn::TransformerConfig& config) {
  nn::DecoderWeights weights;
  kernels::RowType rows = narrow_ ? kernels::RowType::kBf16 : kernels::RowType::kF32;
  for (size_t i = 0; i < config.layers; ++i) {
    const std::string layer = fmt::format("{}.transformer.layers.{}", name, i);
    const auto vector = [&](const char* part) { return reader_.read(layer + part, {config.width}); };
    nn::DecoderBlock l;
    l.before = {vector(".norm1.weight"), vector(".norm1.bias")};
    l.after = {vector(".norm2.weight"), vector(".norm2.bias")};
    if (config.layer_scale) {
      l.attention_scale = vector(".layer_scale_1.scale");
      l.mlp_scale = vector(".layer_scale_2.scale");
      for (auto* scale : {&l.attention_scale, &l.mlp_scale}) scale->resize(round_up(config.width, kPanelColumns));
    }
    l.in = linear(layer + ".self_attn.in_proj", config.attention_width + 2 * config.key_width(), config.width);
    l.out = linear(layer + ".self_attn.out_proj", config.width, config.attention_width);
    l.up = linear(layer + ".linear1", config.hidden, config.width);
    l.down = linear(layer + ".linear2", config.width, config.hidden);
    for (const OwnedMatrix* m : {&l.in, &l.out, &l.up, &l.down})
      rows = std::min(rows, row_type(*m));  // f32 where one of them is
    weights.layers.push_back(std::move(l));
  }
  weights.shape = {.width = config.width,
                   .layers = config.layers,
                   .heads = config.heads,
                   .key_heads = config.key_heads,
                   .head_size = config.head_size(),
                   .hidden = config.hidden,
                   .window = config.window,
                   .period = config.max_period,
                   .mlp = config.gelu_erf ? nn::Mlp::kGelu : nn::Mlp::kGeluTanh,
                   .products = rows == kernels::RowType::kBf16 ? nn::Products::kBf16Rows : nn::Products::kF32Rows,
                   .layer_scale = config.layer_scale};
  weights.set_frequencies();
  return weights;
}

// In the order in which a frame reads them.
Buffer<std::byte> gather(nn::DecoderWeights& transformer, std::vector<SeanetLayer>& seanet) {
  std::vector<OwnedMatrix*> matrices;
  for (nn::DecoderBlock& l : transformer.layers) matrices.insert(matrices.end(), {&l.in, &l.out, &l.up, &l.down});
  for (SeanetLayer& l : seanet) {
    matrices.push_back(&l.conv.matrix);
    if (l.second) matrices.push_back(&l.second->matrix);
  }
  return kernels::gather_panels(matrices);
}

bool reads_bf16(const nn::DecoderWeights& transformer, const std::vector<SeanetLayer>& seanet) {
  return transformer.shape.products == nn::Products::kBf16Rows ||
         std::any_of(seanet.begin(), seanet.end(),
                     [](const SeanetLayer& layer) { return layer.conv.input_type == kernels::RowType::kBf16; });
}

}  // namespace

Result<DecoderWeights> DecoderWeights::load(const Safetensors& tensors, const std::string& file, const Config& config,
                                            Precision precision, kernels::MatrixStore* store) {
  SYRINX_TRY_VOID(check(config));
  Loader loader(tensors, file, precision, store);
  DecoderWeights weights;
  weights.config = config;
  weights.quantizer = loader.quantizer(config.outer_width, config.latent);
  weights.upsample = loader.upsample(config.outer_width, 2 * config.resample_stride());
  weights.transformer = loader.transformer("mimi.decoder_transformer", config.decoder_transformer);
  weights.seanet = loader.decoder(config.decoder);
  SYRINX_TRY_VOID(loader.status());
  if (store != nullptr) weights.packed = store->file();
  weights.panels = gather(weights.transformer, weights.seanet);
  return weights;
}

Result<EncoderWeights> EncoderWeights::load(const Safetensors& tensors, const std::string& file, const Config& config,
                                            Precision precision) {
  SYRINX_TRY_VOID(check(config));
  Loader loader(tensors, file, precision, nullptr);
  EncoderWeights weights;
  weights.config = config;
  weights.seanet = loader.encoder(config.encoder);
  weights.transformer = loader.transformer("mimi.encoder_transformer", config.encoder_transformer);
  weights.downsample = loader.downsample(config.inner_width, config.encoder.width, 2 * config.resample_stride());
  SYRINX_TRY_VOID(loader.status());
  weights.panels = gather(weights.transformer, weights.seanet);
  return weights;
}

bool reads_bf16(const DecoderWeights& weights) { return reads_bf16(weights.transformer, weights.seanet); }
bool reads_bf16(const EncoderWeights& weights) { return reads_bf16(weights.transformer, weights.seanet); }

}  // namespace syrinx::mimi
