#include "models/mimi/weights.h"

#include <algorithm>
#include <span>

#include "tensor/tensor_reader.h"

namespace syrinx::mimi {

using kernels::OwnedMatrix;

namespace {

class Loader {
 public:
  Loader(const Safetensors& tensors, const std::string& file, Precision precision, kernels::MatrixStore* store)
      : reader_(tensors, file),
        store_(store != nullptr ? *store : nothing_),
        seanet_([this](const std::string& name, const std::vector<size_t>& dims) { return reader_.read(name, dims); },
                store_, precision != Precision::kF32 && kernels::bf16_rows_are_faster()) {}
  Status status() const { return reader_.status(); }

  OwnedMatrix linear(const std::string& name, size_t out, size_t in) {
    return seanet_.matrix(name + ".weight", {out, in}, {.columns = out, .channels = in},
                          [=](size_t n, size_t k, size_t) { return n * in + k; });
  }
  OwnedMatrix quantizer(size_t out, size_t in);
  std::vector<float> upsample(size_t width, size_t taps);
  OwnedMatrix downsample(size_t out, size_t in, size_t taps);
  nn::DecoderWeights transformer(const std::string& name, const nn::TransformerConfig& config);
  SeanetReader& seanet() { return seanet_; }

 private:
  TensorReader reader_;
  kernels::MatrixStore nothing_;
  kernels::MatrixStore& store_;
  SeanetReader seanet_;
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
  return seanet_.matrix("mimi.downsample.conv.conv.weight", {out, in, taps},
                        {.columns = out, .channels = in, .taps = taps},
                        [=](size_t n, size_t k, size_t t) { return (n * in + k) * taps + t; });
}

nn::DecoderWeights Loader::transformer(const std::string& name, const nn::TransformerConfig& config) {
  nn::DecoderWeights weights;
  kernels::RowType rows = seanet_.narrow() ? kernels::RowType::kBf16 : kernels::RowType::kF32;
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
      rows = std::min(rows, seanet_.row_type(*m));  // f32 where one of them is
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
  weights.seanet = loader.seanet().decoder("mimi.decoder.model", config.decoder);
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
  weights.seanet = loader.seanet().encoder("mimi.encoder.model", config.encoder);
  weights.transformer = loader.transformer("mimi.encoder_transformer", config.encoder_transformer);
  weights.downsample = loader.downsample(config.inner_width, config.encoder.width, 2 * config.resample_stride());
  SYRINX_TRY_VOID(loader.status());
  weights.panels = gather(weights.transformer, weights.seanet);
  return weights;
}

bool reads_bf16(const DecoderWeights& weights) { return reads_bf16(weights.transformer, weights.seanet); }
bool reads_bf16(const EncoderWeights& weights) { return reads_bf16(weights.transformer, weights.seanet); }

}  // namespace syrinx::mimi
