#include "bench/suite/random_pocket_tts.h"

#include <bit>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <span>

#include "base/json.h"
#include "base/rng.h"
#include "base/scoped_file.h"
#include "bench/suite/random_files.h"
#include "models/pocket_tts/config_file.h"
#include "models/pocket_tts/flow_lm_weights.h"
#include "store/paths.h"

namespace syrinx::bench {
namespace {

using pocket::Config;
using pocket::HeadType;

constexpr size_t kPieces = 4000;
constexpr uint64_t kSeed = 12;

// Differences between the architectures (section 1.2); zero means that the file does not give it.
struct Architecture {
  const char* name;
  size_t width, heads, layers, hidden_scale;
  const char* head;
  size_t head_depth, head_width;
  bool bos_before_voice;
  size_t inner;                                  // width of a voice's latents
  size_t rank, condition, attention, key_heads;  // small models
  size_t hidden;                                 // dim_feedforward, where hidden_scale does not say it
  size_t decoder_filters, decoder_layers;        // small models have a decoder of their own
};
constexpr Architecture kArchitectures[] = {
    {"english", 1024, 16, 6, 4, "lsd", 6, 512, true, 32, 0, 0, 0, 0, 0, 0, 0},
    {"english_24l", 1024, 16, 24, 4, "lsd", 6, 512, true, 32, 0, 0, 0, 0, 0, 0, 0},
    {"english_2026-01", 1024, 16, 6, 4, "lsd", 6, 512, false, 512, 0, 0, 0, 0, 0, 0, 0},
    {"english_drifting", 1024, 16, 6, 4, "drifting", 6, 512, true, 32, 0, 0, 0, 0, 0, 0, 0},
    {"english_18m", 512, 8, 8, 1, "drifting", 4, 192, true, 32, 0, 64, 0, 0, 0, 32, 12},
    {"english_7m", 224, 8, 8, 1, "drifting", 4, 192, true, 32, 64, 64, 512, 2, 0, 32, 12},
    {"english_2m", 112, 3, 8, 1, "pointwise", 4, 64, true, 32, 32, 64, 192, 1, 96, 24, 4},
    {"flow_matching", 1024, 16, 6, 4, "flow_matching", 6, 512, true, 32, 0, 0, 0, 0, 0, 0, 0},
};

std::string line(const char* indent, const char* key, size_t value) {
  return value > 0 ? fmt::format("{}{}: {}\n", indent, key, value) : std::string();
}

std::string seanet_yaml(const char* key, size_t width, size_t filters, size_t kernel) {
  return fmt::format(
      "  {}:\n    dimension: {}\n    channels: 1\n    n_filters: {}\n    n_residual_layers: 1\n    ratios: [6, 5, 4]\n"
      "    kernel_size: {}\n    residual_kernel_size: 3\n    last_kernel_size: 3\n    dilation_base: 2\n"
      "    pad_mode: constant\n    compress: 2\n",
      key, width, filters, kernel);
}

std::string transformer_yaml(const char* key, size_t width, size_t heads, size_t layers, size_t hidden, size_t window) {
  return fmt::format(
      "  {0}:\n    d_model: {1}\n    num_heads: {2}\n    num_layers: {3}\n    layer_scale: 0.01\n    context: {5}\n"
      "    dim_feedforward: {4}\n    input_dimension: {1}\n    output_dimensions: [{1}]\n",
      key, width, heads, layers, hidden, window);
}

std::string config_yaml(const Architecture& a) {
  const bool small = a.decoder_filters > 0;
  std::string text =
      fmt::format("# Random weights: {}, full size, seed {}.\n\nweights_path: model.safetensors\n", a.name, kSeed);
  if (small) text += "default_eos_threshold: -1.0\n";
  text += fmt::format("\nflow_lm:\n  insert_bos_before_voice: {}\n  dtype: float32\n", a.bos_before_voice);
  text += line("  ", "z_dim", a.condition);
  text += fmt::format("  flow:\n    depth: {}\n    dim: {}\n    type: {}\n", a.head_depth, a.head_width, a.head);
  text += fmt::format(
      "  transformer:\n    d_model: {}\n    hidden_scale: {}\n    max_period: 10000\n    num_heads: {}\n"
      "    num_layers: {}\n",
      a.width, a.hidden_scale, a.heads, a.layers);
  text += line("    ", "dim_feedforward", a.hidden) + line("    ", "attn_dim", a.attention) +
          line("    ", "num_kv_heads", a.key_heads);
  text += fmt::format(
      "  lookup_table:\n    dim: {}\n    n_bins: {}\n    tokenizer: tokenizers\n    tokenizer_path: tokenizer.json\n",
      a.width, kPieces);
  text += line("    ", "rank", a.rank);
  const size_t outer = small ? 128 : 512;
  text += fmt::format(
      "\nmimi:\n  dtype: float32\n  sample_rate: 24000\n  inner_dim: {}\n  outer_dim: {}\n  channels: 1\n"
      "  frame_rate: 12.5\n  quantizer:\n    dimension: 32\n    output_dimension: {}\n",
      a.inner, outer, outer);
  text += seanet_yaml("seanet", 512, 64, 7) + transformer_yaml("transformer", 512, 8, 2, 2048, 250);
  if (small) {
    text += seanet_yaml("decoder_seanet", 128, a.decoder_filters, 3) +
            transformer_yaml("decoder_transformer", 128, 4, a.decoder_layers, 384, 50);
  }
  return text;
}

// Collects tensors so that an output keeps its input's size: rows of a matrix have length 1 on average.
class Tensors {
 public:
  void add(std::string name, std::vector<size_t> dims, float centre, float deviation) {
    list_.push_back({std::move(name), std::move(dims), centre, deviation});
  }
  // Dims are [outputs, inputs...].
  void matrix(std::string name, std::vector<size_t> dims, float scale = 1.0f) {
    const size_t inputs = std::accumulate(dims.begin() + 1, dims.end(), size_t{1}, std::multiplies<>());
    add(std::move(name), std::move(dims), 0.0f, scale / std::sqrt(static_cast<float>(inputs)));
  }
  void bias(std::string name, size_t width) { add(std::move(name), {width}, 0.0f, 0.1f); }
  void linear(const std::string& name, size_t out, size_t in) {
    matrix(name + ".weight", {out, in});
    bias(name + ".bias", out);
  }
  void norm(const std::string& name, size_t width) {
    add(name + ".weight", {width}, 1.0f, 0.1f);
    bias(name + ".bias", width);
  }
  void conv(const std::string& name, size_t out, size_t in, size_t kernel, float scale = 1.0f) {
    matrix(name + ".conv.weight", {out, in, kernel}, scale);
    add(name + ".conv.bias", {out}, 0.0f, 0.1f * scale);
  }
  // [inputs, outputs, kernel = 2 strides]: each output sees two taps of every input.
  void transposed(const std::string& name, size_t in, size_t out, size_t stride) {
    add(name + ".convtr.weight", {in, out, 2 * stride}, 0.0f, 1.0f / std::sqrt(2.0f * static_cast<float>(in)));
    bias(name + ".convtr.bias", out);
  }
  void layers(const std::string& prefix, const nn::TransformerConfig& t) {
    for (size_t i = 0; i < t.layers; ++i) {
      const std::string name = fmt::format("{}.layers.{}", prefix, i);
      matrix(name + ".self_attn.in_proj.weight", {t.attention_width + 2 * t.key_width(), t.width});
      matrix(name + ".self_attn.out_proj.weight", {t.width, t.attention_width});
      norm(name + ".norm1", t.width);
      norm(name + ".norm2", t.width);
      matrix(name + ".linear1.weight", {t.hidden, t.width});
      matrix(name + ".linear2.weight", {t.width, t.hidden});
      if (!t.layer_scale) continue;
      add(name + ".layer_scale_1.scale", {t.width}, 0.175f, 0.07f);
      add(name + ".layer_scale_2.scale", {t.width}, 0.175f, 0.07f);
    }
  }
  std::vector<RandomTensor> take() { return std::move(list_); }

 private:
  std::vector<RandomTensor> list_;
};

void add_head(Tensors& t, const Config& config) {
  const pocket::FlowLmConfig& lm = config.flow_lm;
  const std::string net = "flow_lm.flow_net";
  const size_t width = lm.head_width;
  const size_t times = lm.head == HeadType::kLsd ? 2 : lm.head == HeadType::kFlowMatching ? 1 : 0;
  for (size_t i = 0; i < times; ++i) {
    const std::string name = fmt::format("{}.time_embed.{}", net, i);
    t.add(name + ".freqs", {pocket::kTimeFrequencies}, 0.5f, 0.25f);
    t.linear(name + ".mlp.0", width, 2 * pocket::kTimeFrequencies);
    t.linear(name + ".mlp.2", width, width);
    t.add(name + ".mlp.3.alpha", {width}, 1.0f, 0.1f);
  }
  t.linear(net + ".cond_embed", width, lm.condition);
  t.linear(net + ".input_proj", width, config.mimi.latent);
  for (size_t i = 0; i < lm.head_depth; ++i) {
    const std::string name = fmt::format("{}.res_blocks.{}", net, i);
    t.norm(name + ".in_ln", width);
    t.linear(name + ".mlp.0", width, width);
    t.linear(name + ".mlp.2", width, width);
    t.linear(name + ".adaLN_modulation.1", 3 * width, width);
  }
  t.linear(net + ".final_layer.adaLN_modulation.1", 2 * width, width);
  t.linear(net + ".final_layer.linear", config.mimi.latent, width);
}

void add_flow_lm(Tensors& t, const Config& config) {
  const pocket::FlowLmConfig& lm = config.flow_lm;
  const size_t width = lm.transformer.width, latent = config.mimi.latent;
  t.add("flow_lm.emb_std", {latent}, 1.0f, 0.25f);
  t.add("flow_lm.emb_mean", {latent}, 0.0f, 0.5f);
  t.add("flow_lm.bos_emb", {latent}, 0.0f, 1.0f);
  t.matrix("flow_lm.speaker_proj_weight", {width, config.mimi.inner_width});
  if (lm.bos_before_voice) t.add("flow_lm.bos_before_voice", {1, 1, width}, 0.0f, 1.0f);
  t.add("flow_lm.conditioner.embed.weight", {lm.text_bins + 1, lm.text_rank > 0 ? lm.text_rank : width}, 0.0f, 1.0f);
  if (lm.text_rank > 0) t.matrix("flow_lm.conditioner.proj.weight", {width, lm.text_rank});
  t.matrix("flow_lm.input_linear.weight", {width, latent});
  t.layers("flow_lm.transformer", lm.transformer);
  t.norm("flow_lm.out_norm", width);
  if (lm.project_condition) t.matrix("flow_lm.z_proj.weight", {lm.condition, width});
  // A logit of deviation 1 that is over the threshold (about) never: who wants an end chooses another threshold.
  t.matrix("flow_lm.out_eos.weight", {1, lm.condition});
  t.add("flow_lm.out_eos.bias", {1}, config.eos_threshold - 8.0f, 0.0f);
  add_head(t, config);
}

void add_block(Tensors& t, const std::string& name, size_t width, const mimi::SeanetConfig& s) {
  t.conv(name + ".block.1", width / s.compress, width, s.residual_kernel);
  t.conv(name + ".block.3", width, width / s.compress, 1);
}

void add_codec(Tensors& t, const mimi::Config& c) {
  size_t module = 0;  // activations are modules too, without tensors
  const auto name = [&module](const char* side) { return fmt::format("mimi.{}.model.{}", side, module); };
  size_t width = c.encoder.filters;
  t.conv(name("encoder"), width, 1, c.encoder.kernel);
  for (auto ratio = c.encoder.ratios.rbegin(); ratio != c.encoder.ratios.rend(); ++ratio, width *= 2) {
    module += 1;
    add_block(t, name("encoder"), width, c.encoder);
    module += 2;
    t.conv(name("encoder"), 2 * width, width, 2 * *ratio);
  }
  module += 2;
  t.conv(name("encoder"), c.encoder.width, width, c.encoder.last_kernel);
  t.layers("mimi.encoder_transformer.transformer", c.encoder_transformer);
  t.matrix("mimi.downsample.conv.conv.weight", {c.inner_width, c.encoder.width, 2 * c.resample_stride()});

  t.matrix("mimi.quantizer.output_proj.weight", {c.outer_width, c.latent, 1});
  t.add("mimi.upsample.convtr.convtr.weight", {c.outer_width, 1, 2 * c.resample_stride()}, 0.0f, 0.7f);
  t.layers("mimi.decoder_transformer.transformer", c.decoder_transformer);
  module = 0;
  width = c.decoder.filters << c.decoder.ratios.size();
  t.conv(name("decoder"), width, c.decoder.width, c.decoder.kernel);
  for (const size_t ratio : c.decoder.ratios) {
    module += 2;
    t.transposed(name("decoder"), width, width / 2, ratio);
    width /= 2;
    module += 1;
    add_block(t, name("decoder"), width, c.decoder);
  }
  module += 2;
  t.conv(name("decoder"), 1, width, c.decoder.last_kernel, 0.12f);  // sound of a tenth of full scale
}

// Nearest even; the numbers are finite.
uint16_t bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

Status write_tensors(const std::string& path, const std::vector<RandomTensor>& tensors) {
  SYRINX_TRY(ScopedFile file, ScopedFile::create(path));
  SYRINX_TRY_VOID(write_tensor_header(file, tensors, "BF16", sizeof(uint16_t)));
  std::vector<uint16_t> values;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const RandomTensor& tensor = tensors[i];
    Rng rng(kSeed, i);
    values.resize(*element_count(tensor.dims));
    const float width = tensor.deviation * std::sqrt(12.0f);
    for (uint16_t& value : values) value = bf16(tensor.centre + width * (rng.uniform() - 0.5f));
    SYRINX_TRY_VOID(file.write(std::as_bytes(std::span(values))));
  }
  return file.commit();
}

// A vocabulary of the published size whose pieces spell nothing that is ever said: letters counted through.
std::string tokenizer_json() {
  Json::Array vocabulary;
  const auto add = [&vocabulary](std::string piece, double score) {
    vocabulary.push_back(Json::Array{std::move(piece), score});
  };
  for (const char* piece : {"<unk>", "<s>", "</s>", "<pad>"}) add(piece, 0.0);
  for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), 0.0);
  add("\u2581", -2.0);
  for (size_t n = 1; vocabulary.size() < kPieces; ++n) {
    std::string piece;
    for (size_t rest = n; rest > 0; rest = (rest - 1) / 26) piece += static_cast<char>('a' + (rest - 1) % 26);
    add(std::move(piece), -3.0 - 1e-3 * static_cast<double>(n));
  }
  Json model, json;
  model.set("type", "Unigram").set("unk_id", 0).set("vocab", std::move(vocabulary)).set("byte_fallback", true);
  json.set("version", "1.0").set("truncation", Json()).set("padding", Json()).set("added_tokens", Json::Array());
  const Result<Json> normalizer = parse_json(R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},)"
                                             R"({"type":"Replace","pattern":{"String":" "},"content":"▁"}]})",
                                             "normalizer");
  const Result<Json> decoder =
      parse_json(R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},)"
                 R"({"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]})",
                 "decoder");
  json.set("normalizer", *normalizer).set("pre_tokenizer", Json()).set("post_processor", Json());
  json.set("decoder", *decoder).set("model", std::move(model));
  return json.dump() + "\n";
}

}  // namespace

std::vector<std::string> random_pocket_names() {
  std::vector<std::string> names;
  for (const Architecture& a : kArchitectures) names.emplace_back(a.name);
  return names;
}

Result<std::string> random_pocket_config(std::string_view name) {
  for (const Architecture& a : kArchitectures)
    if (name == a.name) return config_yaml(a);
  return fail(Code::kInvalidArgument, "there is no configuration '{}'; give one of {}", name,
              fmt::join(random_pocket_names(), ", "));
}

std::vector<RandomTensor> random_pocket_tensors(const Config& config) {
  Tensors tensors;
  add_flow_lm(tensors, config);
  add_codec(tensors, config.mimi);
  return tensors.take();
}

Status make_random_pocket(const std::string& folder, std::string_view name) {
  SYRINX_TRY(const std::string yaml, random_pocket_config(name));
  const std::string weights = folder + "/model.safetensors";
  std::error_code error;
  if (std::filesystem::is_regular_file(weights, error)) return {};
  SYRINX_TRY(const pocket::ConfigFile parsed, pocket::parse_config(yaml, fmt::format("{}/config.yaml", folder)));
  SYRINX_TRY_VOID(make_folders(folder));
  SYRINX_TRY_VOID(write_random_text(folder + "/config.yaml", yaml));
  SYRINX_TRY_VOID(write_random_text(folder + "/tokenizer.json", tokenizer_json()));
  return write_tensors(weights, random_pocket_tensors(parsed.config));
}

}  // namespace syrinx::bench
