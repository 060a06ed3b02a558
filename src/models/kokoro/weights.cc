#include "models/kokoro/weights.h"

#include <fmt/format.h>

#include "models/kokoro/archive.h"

namespace syrinx::kokoro {
namespace {

std::string index(const std::string& name, size_t i) { return name + "." + std::to_string(i); }

enum class Keep { kQuantised, kFine, kF32 };  // what int8 does to a matrix

template <class Archive>
void linear(Archive& a, PackedMatrix& m, const std::string& name, size_t in, size_t out, Keep keep = Keep::kQuantised) {
  a.matrix(m, {.key = name,
               .weights = {name + ".weight"},
               .biases = {{name + ".bias"}},
               .out = out,
               .in = in,
               .keep_f32 = keep == Keep::kF32,
               .fine = keep == Keep::kFine});
}

template <class Archive>
void convolution(Archive& a, PackedMatrix& m, const std::string& name, size_t in, size_t out, size_t kernel,
                 Keep keep = Keep::kQuantised, bool bias = true) {
  MatrixRecipe r{.key = name,
                 .weights = {name + ".weight"},
                 .layout = WeightLayout::kConv,
                 .out = out,
                 .in = in,
                 .kernel = kernel,
                 .keep_f32 = keep == Keep::kF32,
                 .fine = keep == Keep::kFine};
  if (bias) r.biases = {{name + ".bias"}};
  a.matrix(m, r);
}

template <class Archive>
void style_norm(Archive& a, PackedMatrix& m, const std::string& name, size_t style, size_t channels) {
  linear(a, m, name + ".fc", style, 2 * channels);
}

template <class Archive>
void norm(Archive& a, Affine& n, const std::string& gamma, const std::string& beta, size_t channels) {
  a.values(n.gamma, gamma, {channels});
  a.values(n.beta, beta, {channels});
}

template <class Archive>
void lstm(Archive& a, nn::Lstm& l, const std::string& name, size_t inputs, size_t width) {
  l.inputs = inputs;
  l.width = width;
  const std::string suffix[2] = {"_l0", "_l0_reverse"};
  MatrixRecipe input{.key = name + ".weight_ih", .out = 4 * width, .in = inputs};
  for (const std::string& s : suffix) {
    input.weights.push_back(fmt::format("{}.weight_ih{}", name, s));
    input.biases.push_back({fmt::format("{}.bias_ih{}", name, s), fmt::format("{}.bias_hh{}", name, s)});
  }
  a.matrix(l.input, input);
  for (size_t d = 0; d < 2; ++d) {
    const std::string key = name + ".weight_hh" + suffix[d];
    a.matrix(l.recurrent[d], {.key = key, .weights = {key}, .out = 4 * width, .in = width});
  }
}

template <class Archive>
void res_block(Archive& a, ResBlock& b, const std::string& name, size_t style, size_t in, size_t out, bool upsample) {
  b.in = in;
  b.out = out;
  b.upsample = upsample;
  style_norm(a, b.norm1, name + ".norm1", style, in);
  style_norm(a, b.norm2, name + ".norm2", style, out);
  convolution(a, b.conv1, name + ".conv1", in, out, 3);
  convolution(a, b.conv2, name + ".conv2", out, out, 3);
  // The shortcut sees raw values, among them F0 in Hz beside features near 1: one byte could not hold both.
  if (in != out) convolution(a, b.shortcut, name + ".conv1x1", in, out, 1, Keep::kFine, false);
  if (upsample) {
    a.depthwise(b.pool, name + ".pool.weight", in, 3);
    a.values(b.pool_bias, name + ".pool.bias", {in}, true);
  }
}

template <class Archive>
void snake_block(Archive& a, SnakeBlock& b, const std::string& name, size_t style, size_t channels, size_t kernel) {
  b.channels = channels;
  b.kernel = kernel;
  for (size_t j = 0; j < 3; ++j) {
    style_norm(a, b.norm1[j], index(name + ".adain1", j), style, channels);
    style_norm(a, b.norm2[j], index(name + ".adain2", j), style, channels);
    convolution(a, b.conv1[j], index(name + ".convs1", j), channels, channels, kernel);
    convolution(a, b.conv2[j], index(name + ".convs2", j), channels, channels, kernel);
    a.snake(b.alpha1[j], index(name + ".alpha1", j), channels);
    a.snake(b.alpha2[j], index(name + ".alpha2", j), channels);
  }
}

template <class Archive>
void bert(Archive& a, Weights& w) {
  const Config& c = w.config;
  // The shared layer's inputs have outliers, and its twelve passes add up: activations in two bytes but for the one
  // product that does not mind (docs/journal.md).
  const std::string e = "bert.embeddings.", l = "bert.encoder.albert_layer_groups.0.albert_layers.0.";
  a.values(w.word, e + "word_embeddings.weight", {c.tokens, c.embedding});
  a.values(w.position, e + "position_embeddings.weight", {c.positions, c.embedding});
  a.values(w.token_type, e + "token_type_embeddings.weight", {2, c.embedding});
  norm(a, w.embedding_norm, e + "LayerNorm.weight", e + "LayerNorm.bias", c.embedding);
  linear(a, w.bert_in, "bert.encoder.embedding_hidden_mapping_in", c.embedding, c.bert, Keep::kFine);
  MatrixRecipe qkv{.key = l + "attention.qkv", .out = c.bert, .in = c.bert, .fine = true};
  for (const char* part : {"query", "key", "value"}) {
    qkv.weights.push_back(l + "attention." + part + ".weight");
    qkv.biases.push_back({l + "attention." + part + ".bias"});
  }
  a.matrix(w.qkv, qkv);
  linear(a, w.attention_out, l + "attention.dense", c.bert, c.bert);
  norm(a, w.attention_norm, l + "attention.LayerNorm.weight", l + "attention.LayerNorm.bias", c.bert);
  linear(a, w.ffn_in, l + "ffn", c.bert, c.bert_ffn, Keep::kFine);
  linear(a, w.ffn_out, l + "ffn_output", c.bert_ffn, c.bert, Keep::kFine);
  norm(a, w.full_norm, l + "full_layer_layer_norm.weight", l + "full_layer_layer_norm.bias", c.bert);
  linear(a, w.bert_encoder, "bert_encoder", c.bert, c.hidden, Keep::kFine);
}

template <class Archive>
void prosody(Archive& a, Weights& w) {
  const Config& c = w.config;
  const size_t wide = c.hidden + c.style, half = c.hidden / 2;
  for (size_t i = 0; i < 3; ++i) {
    lstm(a, w.duration_lstm[i], index("predictor.text_encoder.lstms", 2 * i), wide, half);
    style_norm(a, w.duration_norm[i], index("predictor.text_encoder.lstms", 2 * i + 1), c.style, c.hidden);
  }
  lstm(a, w.duration_out, "predictor.lstm", wide, half);
  linear(a, w.duration_proj, "predictor.duration_proj.linear_layer", c.hidden, c.durations, Keep::kF32);
  lstm(a, w.shared, "predictor.shared", wide, half);
  const auto branch = [&](std::array<ResBlock, 3>& blocks, PackedMatrix& projection, const std::string& name) {
    res_block(a, blocks[0], "predictor." + name + ".0", c.style, c.hidden, c.hidden, false);
    res_block(a, blocks[1], "predictor." + name + ".1", c.style, c.hidden, half, true);
    res_block(a, blocks[2], "predictor." + name + ".2", c.style, half, half, false);
    convolution(a, projection, "predictor." + name + "_proj", half, 1, 1, Keep::kF32);
  };
  branch(w.f0, w.f0_proj, "F0");
  branch(w.energy, w.energy_proj, "N");
}

template <class Archive>
void decoder(Archive& a, Weights& w) {
  const Config& c = w.config;
  const std::string d = "decoder.";
  a.small(w.f0_conv, d + "F0_conv", {1, 1, 3});
  a.small(w.energy_conv, d + "N_conv", {1, 1, 3});
  convolution(a, w.asr_res, d + "asr_res.0", c.hidden, c.asr_res, 1);
  res_block(a, w.encode, d + "encode", c.style, c.hidden + 2, c.decoder, false);
  const size_t wide = c.decoder + c.asr_res + 2;
  for (size_t i = 0; i < 4; ++i)
    res_block(a, w.decode[i], index(d + "decode", i), c.style, wide, i < 3 ? c.decoder : c.generator, i == 3);
}

template <class Archive>
void generator(Archive& a, Weights& w) {
  const Config& c = w.config;
  const std::string g = "decoder.generator.";
  a.small(w.source, g + "m_source.l_linear", {1, kHarmonics});
  for (size_t i = 0; i < 2; ++i) {
    const size_t in = c.generator >> i, out = in / 2;
    // Magnitudes near zero stand beside angles up to pi: f32, and a hundredth of the work.
    convolution(a, w.noise_conv[i], index(g + "noise_convs", i), kSpectrum, out, kNoiseKernel[i], Keep::kF32);
    snake_block(a, w.noise_res[i], index(g + "noise_res", i), c.style, out, kNoiseResKernel[i]);
    const std::string up = index(g + "ups", i);
    a.matrix(w.up[i], {.key = up,
                       .weights = {up + ".weight"},
                       .biases = {{up + ".bias"}},
                       .layout = WeightLayout::kTransposedConv,
                       .out = out,
                       .in = in,
                       .kernel = 2 * kUpsample[i]});
    for (size_t j = 0; j < 3; ++j)
      snake_block(a, w.resblocks[3 * i + j], index(g + "resblocks", 3 * i + j), c.style, out, kResKernel[j]);
  }
  convolution(a, w.conv_post, g + "conv_post", c.generator / 4, kSpectrum, 7, Keep::kF32);
}

constexpr char kConfigKey[] = "config";
constexpr char kFirstOfGenerator[] = "decoder.generator.m_source.l_linear";

}  // namespace

template <class Archive>
void Weights::each(Archive& a) {
  bert(a, *this);
  prosody(a, *this);
  const std::string t = "text_encoder.";
  a.values(text_embedding, t + "embedding.weight", {config.tokens, config.hidden});
  for (size_t i = 0; i < 3; ++i) {
    convolution(a, text_conv[i], index(t + "cnn", i) + ".0", config.hidden, config.hidden, 5);
    norm(a, text_norm[i], index(t + "cnn", i) + ".1.gamma", index(t + "cnn", i) + ".1.beta", config.hidden);
  }
  lstm(a, text_lstm, t + "lstm", config.hidden, config.hidden / 2);
  decoder(a, *this);
  generator(a, *this);
}

Result<Config> Config::from(const Checkpoint& k) {
  Config c;
  const auto axis = [&](uint32_t& to, const char* name, size_t axis_index, size_t rank) -> Status {
    SYRINX_TRY(const std::vector<size_t> shape, k.shape(name));
    if (shape.size() != rank)
      return fail(Code::kDataLoss, "'{}': weight '{}' has {} dimensions, expected {}", k.path(), name, shape.size(),
                  rank);
    if (shape[axis_index] == 0 || shape[axis_index] > 65536)
      return fail(Code::kDataLoss, "'{}': weight '{}' has an impossible size", k.path(), name);
    to = static_cast<uint32_t>(shape[axis_index]);
    return {};
  };
  SYRINX_TRY_VOID(axis(c.tokens, "bert.embeddings.word_embeddings.weight", 0, 2));
  SYRINX_TRY_VOID(axis(c.embedding, "bert.embeddings.word_embeddings.weight", 1, 2));
  SYRINX_TRY_VOID(axis(c.positions, "bert.embeddings.position_embeddings.weight", 0, 2));
  SYRINX_TRY_VOID(axis(c.bert, "bert.encoder.embedding_hidden_mapping_in.weight", 0, 2));
  SYRINX_TRY_VOID(axis(c.bert_ffn, "bert.encoder.albert_layer_groups.0.albert_layers.0.ffn.weight", 0, 2));
  SYRINX_TRY_VOID(axis(c.hidden, "bert_encoder.weight", 0, 2));
  SYRINX_TRY_VOID(axis(c.style, "decoder.encode.norm1.fc.weight", 1, 2));
  SYRINX_TRY_VOID(axis(c.durations, "predictor.duration_proj.linear_layer.weight", 0, 2));
  SYRINX_TRY_VOID(axis(c.decoder, "decoder.encode.conv1.weight", 0, 3));
  SYRINX_TRY_VOID(axis(c.asr_res, "decoder.asr_res.0.weight", 0, 3));
  SYRINX_TRY_VOID(axis(c.generator, "decoder.generator.ups.0.weight", 0, 3));
  if (auto status = c.validate(); !status)
    return fail(Code::kUnsupported, "'{}': {}", k.path(), status.error().message);
  return c;
}

Status Config::validate() const {
  const auto bounded = [](uint32_t v, uint32_t low, uint32_t high) { return v >= low && v <= high; };
  if (!bounded(tokens, 1, 4096) || !bounded(embedding, 4, 2048) || !bounded(bert, 64, 4096) || bert % kBertHead != 0 ||
      !bounded(bert_ffn, 4, 16384) || !bounded(positions, 3, 8192) || !bounded(hidden, 16, 4096) || hidden % 16 != 0 ||
      !bounded(style, 4, 2048) || !bounded(durations, 1, 1024) || !bounded(decoder, 4, 8192) ||
      !bounded(asr_res, 1, 1024) || !bounded(generator, 16, 4096) || generator % 16 != 0)
    return fail(Code::kUnsupported, "the sizes of its layers are not those of a Kokoro model");
  return {};
}

Result<std::unique_ptr<Weights>> Weights::pack(const Checkpoint& checkpoint, Precision precision,
                                               const std::string& path, const std::string& key) {
  Weights sizes;
  sizes.precision = precision;
  SYRINX_TRY(sizes.config, Config::from(checkpoint));
  SYRINX_TRY(PackedFileWriter writer, PackedFileWriter::create(path, key));
  SYRINX_TRY_VOID(writer.add_array(kConfigKey, std::span<const Config>(&sizes.config, 1)));
  PackArchive archive(checkpoint, precision, writer);
  sizes.each(archive);
  if (!archive.status()) return tl::unexpected(archive.status().error());
  SYRINX_TRY(PackedFile file, writer.finish());
  return bind(std::move(file), precision);
}

Result<std::unique_ptr<Weights>> Weights::bind(PackedFile file, Precision precision) {
  auto weights = std::make_unique<Weights>();
  weights->precision = precision;
  weights->file = std::move(file);
  SYRINX_TRY(const std::span<const Config> config, weights->file.array<Config>(kConfigKey));
  if (config.size() != 1) return fail(Code::kDataLoss, "a packed Kokoro has no configuration");
  weights->config = config[0];
  SYRINX_TRY_VOID(weights->config.validate());
  BindArchive archive(weights->file);
  weights->each(archive);
  if (!archive.status()) return tl::unexpected(archive.status().error());
  return weights;
}

void Weights::release_all_but_generator() const { file.release_before(kFirstOfGenerator); }

}  // namespace syrinx::kokoro
