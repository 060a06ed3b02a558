#include "bench/suite/random_qwen_tts.h"

#include <cmath>
#include <filesystem>
#include <functional>
#include <numeric>

#include "base/json.h"
#include "bench/suite/random_files.h"
#include "bench/suite/random_qwen_files.h"
#include "cli/output.h"
#include "cli/pull_report.h"
#include "store/paths.h"

namespace syrinx::bench {
namespace {

using qwen_tts::CodecDecoderConfig;
using qwen_tts::Config;

struct Stack {
  size_t width, hidden, layers, heads, key_heads, head_size;
};

struct Shape {
  const char* name;
  const char* published;  // tts_model_size
  size_t codes, control;  // the first codec id that is no code
  Stack talker;
  size_t text_width;
  Stack predictor;
  std::array<int, 3> rotary_sections;
  // The codec.
  Stack decoder;
  size_t codebook_dim, latent, decoder_width, window;
  Stack encoder;
  size_t filters, encoder_row;
};
constexpr Stack kPredictor{1024, 3072, 5, 16, 8, 128};
constexpr Stack kDecoder{512, 1024, 8, 16, 16, 64}, kEncoder{512, 2048, 8, 8, 8, 64};
constexpr Shape published(const char* name, const char* size, size_t width) {
  return {.name = name,
          .published = size,
          .codes = 2048,
          .control = 2148,
          .talker = {width, 3 * width, 28, 16, 8, 128},
          .text_width = 2048,
          .predictor = kPredictor,
          .rotary_sections = {24, 20, 20},
          .decoder = kDecoder,
          .codebook_dim = 512,
          .latent = 1024,
          .decoder_width = 1536,
          .window = 72,
          .encoder = kEncoder,
          .filters = 64,
          .encoder_row = 256};
}
constexpr Shape kShapes[] = {
    published("0.6b", "0b6", 1024),
    published("1.7b", "1b7", 2048),
    // With so many codes that 50 of them are likelier than the end, whose logit is 0.
    {"small",
     "0b6",
     256,
     256,
     {32, 96, 2, 4, 2, 16},
     24,
     {32, 64, 2, 4, 2, 16},
     {4, 2, 2},
     {32, 32, 2, 4, 4, 16},
     16,
     32,
     32,
     8,
     {32, 32, 2, 2, 2, 16},
     2,
     8},
};

constexpr int kCodebooks = 16;
constexpr uint64_t kOtherBytes = 8'000'000;  // vocabulary, configurations and headers are fewer

Json stack_json(const Stack& stack) {
  Json json;
  json.set("hidden_size", stack.width).set("intermediate_size", stack.hidden).set("num_hidden_layers", stack.layers);
  json.set("num_attention_heads", stack.heads).set("num_key_value_heads", stack.key_heads);
  return json.set("head_dim", stack.head_size).set("hidden_act", "silu");
}

Json ids_json(std::span<const RandomQwenId> ids, const Shape& shape, size_t small_from) {
  Json json = Json::Object();
  for (size_t i = 0; i < ids.size(); ++i)
    json.set(ids[i].name, shape.control == shape.codes ? shape.codes + small_from + i : static_cast<size_t>(ids[i].id));
  return json;
}

Json talker_json(const Shape& shape, const RandomQwenText& text) {
  Json predictor = stack_json(shape.predictor);
  predictor.set("model_type", "qwen3_tts_talker_code_predictor").set("vocab_size", shape.codes);
  predictor.set("num_code_groups", kCodebooks).set("rms_norm_eps", 1e-6).set("rope_theta", 1e6);
  predictor.set("max_position_embeddings", 65536);
  Json scaling, dialects = Json::Object(), json = stack_json(shape.talker);
  scaling.set("rope_type", "default").set("interleaved", true);
  scaling.set("mrope_section", Json::Array(shape.rotary_sections.begin(), shape.rotary_sections.end()));
  for (const RandomQwenId& speaker : kRandomQwenSpeakers)
    dialects.set(speaker.name, speaker.dialect == nullptr ? Json(false) : Json(speaker.dialect));
  const auto control = [&shape](size_t n) { return shape.control + n; };
  json.set("model_type", "qwen3_tts_talker").set("vocab_size", shape.codes + Config::kControlTokens);
  json.set("text_hidden_size", shape.text_width).set("text_vocab_size", text.vocabulary);
  json.set("num_code_groups", kCodebooks).set("rms_norm_eps", 1e-6).set("rope_theta", 1e6);
  json.set("rope_scaling", std::move(scaling)).set("max_position_embeddings", 32768).set("attention_bias", false);
  json.set("codec_pad_id", control(0)).set("codec_bos_id", control(1)).set("codec_eos_token_id", control(2));
  json.set("codec_think_id", control(6)).set("codec_nothink_id", control(7));
  json.set("codec_think_bos_id", control(8)).set("codec_think_eos_id", control(9));
  json.set("codec_language_id", ids_json(kRandomQwenLanguages, shape, 32));
  json.set("spk_id", ids_json(kRandomQwenSpeakers, shape, 64)).set("spk_is_dialect", std::move(dialects));
  return json.set("position_id_per_seconds", 13).set("code_predictor_config", std::move(predictor));
}

std::string model_json(const Shape& shape, const RandomQwenText& text) {
  Json json;
  json.set("architectures", Json::Array{"Qwen3TTSForConditionalGeneration"}).set("model_type", "qwen3_tts");
  for (size_t i = 0; i < kRandomQwenSpecial.size(); ++i) json.set(kRandomQwenSpecial[i].key, text.special[i]);
  json.set("assistant_token_id", text.assistant).set("tokenizer_type", "qwen3_tts_tokenizer_12hz");
  json.set("tts_model_size", shape.published).set("tts_model_type", "custom_voice");
  json.set("talker_config", talker_json(shape, text)).set("transformers_version", "4.57.3");
  return json.dump() + "\n";
}

Json codec_decoder_json(const Shape& shape) {
  Json json = stack_json(shape.decoder);
  json.set("codebook_size", shape.codes).set("codebook_dim", shape.codebook_dim).set("latent_dim", shape.latent);
  json.set("rms_norm_eps", 1e-5).set("rope_theta", 10000).set("sliding_window", shape.window);
  json.set("layer_scale_initial_scale", 0.01).set("max_position_embeddings", 8000).set("attention_bias", false);
  json.set("num_quantizers", kCodebooks).set("num_semantic_quantizers", 1).set("upsampling_ratios", Json::Array{2, 2});
  return json.set("upsample_rates", Json::Array{8, 5, 4, 3}).set("decoder_dim", shape.decoder_width);
}

Json codec_encoder_json(const Shape& shape) {
  const bool is_small = shape.filters < 64;
  Json json = stack_json(shape.encoder);
  json.set("_frame_rate", 12.5).set("sampling_rate", 24000).set("audio_channels", 1).set("num_filters", shape.filters);
  json.set("kernel_size", 7).set("residual_kernel_size", 3).set("last_kernel_size", 3).set("num_residual_layers", 1);
  json.set("dilation_growth_rate", 2).set("compress", 2).set("upsampling_ratios", Json::Array{8, 6, 5, 4});
  json.set("norm_eps", 1e-5).set("rope_theta", 10000.0).set("sliding_window", 250);
  json.set("max_position_embeddings", 8000).set("codebook_size", shape.codes).set("codebook_dim", shape.encoder_row);
  json.set("vector_quantization_hidden_dimension", shape.encoder_row).set("num_quantizers", is_small ? 17 : 32);
  json.set("num_semantic_quantizers", 1).set("use_causal_conv", true).set("pad_mode", "constant");
  json.set("use_conv_shortcut", false).set("trim_right_ratio", 1.0).set("upsample_groups", shape.encoder.width);
  json.set("layer_scale_initial_scale", 0.01).set("normalize", false).set("hidden_act", "gelu");
  return json;
}

std::string codec_json(const Shape& shape) {
  Json json;
  json.set("architectures", Json::Array{"Qwen3TTSTokenizerV2Model"}).set("model_type", "qwen3_tts_tokenizer_12hz");
  json.set("encoder_valid_num_quantizers", kCodebooks).set("input_sample_rate", 24000);
  json.set("output_sample_rate", 24000).set("decode_upsample_rate", 1920).set("encode_downsample_rate", 1920);
  json.set("decoder_config", codec_decoder_json(shape)).set("encoder_config", codec_encoder_json(shape));
  return json.dump() + "\n";
}

// Collects tensors so that an output keeps its input's size: rows of a matrix have length 1 on average.
class Tensors {
 public:
  void add(std::string name, std::vector<size_t> dims, float centre, float deviation) {
    list_.push_back({.name = std::move(name), .dims = std::move(dims), .centre = centre, .deviation = deviation});
  }
  void matrix(std::string name, std::vector<size_t> dims) {
    const size_t inputs = std::accumulate(dims.begin() + 1, dims.end(), size_t{1}, std::multiplies<>());
    add(std::move(name), std::move(dims), 0.0f, 1.0f / std::sqrt(static_cast<float>(inputs)));
  }
  void linear(const std::string& name, std::vector<size_t> dims) {
    const size_t out = dims[0];
    matrix(name + ".weight", std::move(dims));
    add(name + ".bias", {out}, 0.0f, 0.1f);
  }
  // [inputs, outputs, kernel]: each output sees `taps` of every input.
  void transposed(const std::string& name, size_t in, size_t out, size_t kernel, size_t taps) {
    add(name + ".weight", {in, out, kernel}, 0.0f, 1.0f / std::sqrt(static_cast<float>(in * taps)));
    add(name + ".bias", {out}, 0.0f, 0.1f);
  }
  void norm(std::string name, size_t width) { add(std::move(name), {width}, 1.0f, 0.1f); }
  void scale(std::string name, size_t width) { add(std::move(name), {width}, 0.1f, 0.02f); }
  void embedding(std::string name, size_t rows, size_t width) { add(std::move(name), {rows, width}, 0.0f, 0.5f); }
  // Exponents of a slope and of what it is divided by, from -0.5 to 0.5.
  void snake(const std::string& name, size_t width) {
    for (const char* const part : {".alpha", ".beta"}) add(name + part, {width}, 0.0f, 1.0f / std::sqrt(12.0f));
  }
  RandomQwenTensor& last() { return list_.back(); }
  std::vector<RandomQwenTensor> take() { return std::move(list_); }

  // T: a transformer's configuration, of the model or of the codec.
  template <class T>
  void attention(const std::string& layer, const T& t) {
    const size_t queries = t.heads * t.head_size, keys = t.key_heads * t.head_size;
    matrix(layer + ".self_attn.q_proj.weight", {queries, t.width});
    matrix(layer + ".self_attn.k_proj.weight", {keys, t.width});
    matrix(layer + ".self_attn.v_proj.weight", {keys, t.width});
    matrix(layer + ".self_attn.o_proj.weight", {t.width, queries});
    matrix(layer + ".mlp.gate_proj.weight", {t.hidden, t.width});
    matrix(layer + ".mlp.up_proj.weight", {t.hidden, t.width});
    matrix(layer + ".mlp.down_proj.weight", {t.width, t.hidden});
    norm(layer + ".input_layernorm.weight", t.width);
    norm(layer + ".post_attention_layernorm.weight", t.width);
  }

 private:
  std::vector<RandomQwenTensor> list_;
};

void add_stack(Tensors& t, const std::string& prefix, const qwen_tts::TransformerConfig& c) {
  for (size_t i = 0; i < c.layers; ++i) {
    const std::string layer = fmt::format("{}.layers.{}", prefix, i);
    t.attention(layer, c);
    t.norm(layer + ".self_attn.q_norm.weight", c.head_size);
    t.norm(layer + ".self_attn.k_norm.weight", c.head_size);
  }
  t.norm(prefix + ".norm.weight", c.width);
}

void add_quantizer(Tensors& t, const std::string& name, size_t levels, const CodecDecoderConfig& c) {
  const std::string prefix = "decoder.quantizer." + name;
  t.matrix(prefix + ".input_proj.weight", {c.row_width(), c.codebook_dim, 1});
  t.matrix(prefix + ".output_proj.weight", {c.codebook_dim, c.row_width(), 1});
  for (size_t i = 0; i < levels; ++i) {
    const std::string codebook = fmt::format("{}.vq.layers.{}._codebook.", prefix, i);
    t.add(codebook + "cluster_usage", {c.codebook_size}, 4.25f, 7.5f / std::sqrt(12.0f));  // from 0.5 to 8
    t.add(codebook + "embedding_sum", {c.codebook_size, c.row_width()}, 0.0f, 1.0f);
  }
}

void add_upsampling(Tensors& t, const CodecDecoderConfig& c) {
  for (size_t i = 0; i < c.ratios.size(); ++i) {
    const std::string name = fmt::format("decoder.upsample.{}.", i);
    t.transposed(name + "0.conv", c.latent, c.latent, c.ratios[i], 1);
    t.linear(name + "1.dwconv.conv", {c.latent, 1, 7});
    t.norm(name + "1.norm.weight", c.latent);
    t.add(name + "1.norm.bias", {c.latent}, 0.0f, 0.1f);
    t.scale(name + "1.gamma", c.latent);
    t.linear(name + "1.pwconv1", {4 * c.latent, c.latent});
    t.linear(name + "1.pwconv2", {c.latent, 4 * c.latent});
  }
}

void add_decoder_blocks(Tensors& t, const CodecDecoderConfig& c) {
  t.linear("decoder.decoder.0.conv", {c.width, c.latent, 7});
  size_t channels = c.width, number = 1;
  for (const size_t rate : c.rates) {
    const std::string block = fmt::format("decoder.decoder.{}.block.", number++);
    t.snake(block + "0", channels);
    t.transposed(block + "1.conv", channels, channels / 2, 2 * rate, 2);
    channels /= 2;
    for (const int unit : {2, 3, 4}) {
      t.snake(fmt::format("{}{}.act1", block, unit), channels);
      t.snake(fmt::format("{}{}.act2", block, unit), channels);
      t.linear(fmt::format("{}{}.conv1.conv", block, unit), {channels, channels, 7});
      t.linear(fmt::format("{}{}.conv2.conv", block, unit), {channels, channels, 1});
    }
  }
  t.snake(fmt::format("decoder.decoder.{}", number), channels);
  t.linear(fmt::format("decoder.decoder.{}.conv", number + 1), {1, channels, 7});
}

Result<const Shape*> find_shape(std::string_view name) {
  for (const Shape& shape : kShapes)
    if (name == shape.name) return &shape;
  return fail(Code::kInvalidArgument, "there is no configuration '{}'; give one of {}", name,
              fmt::join(random_qwen_names(), ", "));
}

RandomQwenText text_of(const Shape& shape) { return random_qwen_text(shape.control != shape.codes); }

constexpr const char* kGeneration =
    R"({"do_sample": true, "temperature": 0.9, "top_k": 50, "top_p": 1.0, "repetition_penalty": 1.05,)"
    R"( "subtalker_dosample": true, "subtalker_temperature": 0.9, "subtalker_top_k": 50, "subtalker_top_p": 1.0,)"
    R"( "max_new_tokens": 8192})"
    "\n";

}  // namespace

std::vector<std::string> random_qwen_names() {
  std::vector<std::string> names;
  for (const Shape& shape : kShapes) names.emplace_back(shape.name);
  return names;
}

Result<RandomQwenConfigs> random_qwen_configs(std::string_view name) {
  SYRINX_TRY(const Shape* const shape, find_shape(name));
  return RandomQwenConfigs{.model = model_json(*shape, text_of(*shape)), .codec = codec_json(*shape)};
}

std::vector<RandomQwenTensor> random_qwen_tensors(const Config& config) {
  const size_t width = config.talker.width;
  Tensors t;
  t.embedding("talker.model.text_embedding.weight", config.text_vocabulary, config.text_width);
  t.embedding("talker.model.codec_embedding.weight", config.vocabulary, width);
  add_stack(t, "talker.model", config.talker);
  t.linear("talker.text_projection.linear_fc1", {config.text_width, config.text_width});
  t.linear("talker.text_projection.linear_fc2", {width, config.text_width});
  t.matrix("talker.codec_head.weight", {config.vocabulary, width});
  t.last().zero_row = config.codec.eos;
  add_stack(t, "talker.code_predictor.model", config.predictor);
  for (size_t i = 0; i + 1 < config.codebooks; ++i) {
    t.embedding(fmt::format("talker.code_predictor.model.codec_embedding.{}.weight", i), config.predictor_codes, width);
    t.matrix(fmt::format("talker.code_predictor.lm_head.{}.weight", i),
             {config.predictor_codes, config.predictor.width});
  }
  if (config.projects_predictor())
    t.linear("talker.code_predictor.small_to_mtp_projection", {config.predictor.width, width});
  return t.take();
}

std::vector<RandomQwenTensor> random_qwen_codec_tensors(const CodecDecoderConfig& config) {
  const qwen_tts::CodecTransformer& transformer = config.transformer;
  Tensors t;
  add_quantizer(t, "rvq_first", 1, config);
  add_quantizer(t, "rvq_rest", config.codebooks - 1, config);
  t.linear("decoder.pre_conv.conv", {config.latent, config.codebook_dim, 3});
  t.linear("decoder.pre_transformer.input_proj", {transformer.width, config.latent});
  t.linear("decoder.pre_transformer.output_proj", {config.latent, transformer.width});
  t.norm("decoder.pre_transformer.norm.weight", transformer.width);
  for (size_t i = 0; i < transformer.layers; ++i) {
    const std::string layer = fmt::format("decoder.pre_transformer.layers.{}", i);
    t.attention(layer, transformer);
    t.scale(layer + ".self_attn_layer_scale.scale", transformer.width);
    t.scale(layer + ".mlp_layer_scale.scale", transformer.width);
  }
  add_upsampling(t, config);
  add_decoder_blocks(t, config);
  return t.take();
}

Status make_random_qwen(const std::string& folder, std::string_view name, ThreadTeam& team) {
  SYRINX_TRY(const Shape* const shape, find_shape(name));
  const std::string weights = folder + "/model.safetensors", codec = folder + "/speech_tokenizer";
  std::error_code error;
  if (std::filesystem::is_regular_file(weights, error)) return {};
  const RandomQwenText text = text_of(*shape);
  const RandomQwenConfigs configs{.model = model_json(*shape, text), .codec = codec_json(*shape)};
  SYRINX_TRY(const Config model, qwen_tts::read_config(configs.model, folder + "/config.json"));
  SYRINX_TRY(const qwen_tts::CodecConfig sound, qwen_tts::read_codec_config(configs.codec, codec + "/config.json"));
  const std::vector<RandomQwenTensor> tensors = random_qwen_tensors(model);
  const std::vector<RandomQwenTensor> codec_tensors = random_qwen_codec_tensors(sound.decoder);
  const uint64_t needed =
      random_bytes(tensors, RandomNumbers::kBf16) + random_bytes(codec_tensors, RandomNumbers::kF32) + kOtherBytes;
  SYRINX_TRY(const uint64_t free, free_bytes(folder));
  SYRINX_TRY_VOID(check_room(folder, needed, free));
  cli::note(fmt::format("writing a random checkpoint of {} to '{}'", cli::size_text(needed), folder));
  SYRINX_TRY_VOID(make_folders(codec));
  SYRINX_TRY_VOID(write_random_text(codec + "/config.json", configs.codec));
  SYRINX_TRY_VOID(write_random_tensors(codec + "/model.safetensors", codec_tensors, RandomNumbers::kF32, team));
  SYRINX_TRY_VOID(write_random_text(folder + "/config.json", configs.model));
  SYRINX_TRY_VOID(write_random_text(folder + "/generation_config.json", kGeneration));
  SYRINX_TRY_VOID(write_random_text(folder + "/vocab.json", text.vocab_json));
  SYRINX_TRY_VOID(write_random_text(folder + "/merges.txt", text.merges));
  SYRINX_TRY_VOID(write_random_text(folder + "/tokenizer_config.json", text.tokenizer_json));
  return write_random_tensors(weights, tensors, RandomNumbers::kBf16, team);
}

}  // namespace syrinx::bench
