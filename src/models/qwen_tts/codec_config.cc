#include "models/qwen_tts/codec_config.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json.h"
#include "models/qwen_tts/json_section.h"
#include "nn/kv_cache.h"

namespace syrinx::qwen_tts {
namespace {

constexpr JsonLimits kJsonLimits{.max_bytes = size_t{1} << 20, .max_depth = 16};
constexpr const char* kKind = "qwen3_tts_tokenizer_12hz";

// Factors are checked before: at most kMaxCodecRatios of kMaxCodecRatio each.
size_t product(const std::vector<size_t>& ratios) {
  size_t value = 1;
  for (const size_t ratio : ratios) value *= ratio;
  return value;
}

constexpr float kAnyNumber = std::numeric_limits<float>::max();

Result<CodecTransformer> read_transformer(const JsonSection& from, const char* activation, const char* epsilon) {
  CodecTransformer t;
  SYRINX_TRY(t.width, from.whole("hidden_size"));
  SYRINX_TRY(t.layers, from.whole("num_hidden_layers"));
  SYRINX_TRY(t.heads, from.whole("num_attention_heads"));
  SYRINX_TRY(t.key_heads, from.whole_or("num_key_value_heads", t.heads));
  SYRINX_TRY(t.head_size, from.whole_or("head_dim", t.width / std::max<size_t>(t.heads, 1)));
  SYRINX_TRY(t.hidden, from.whole("intermediate_size"));
  SYRINX_TRY(t.window, from.whole("sliding_window"));
  SYRINX_TRY(t.epsilon, from.number_or(epsilon, 1e-5f, -kAnyNumber, kAnyNumber));
  SYRINX_TRY(t.period, from.number_or("rope_theta", 10000.0f, -kAnyNumber, kAnyNumber));
  SYRINX_TRY_VOID(from.only("hidden_act", activation));
  SYRINX_TRY_VOID(from.only("attention_bias", false));
  if (from.has("rope_scaling")) {
    SYRINX_TRY(const JsonSection scaling, from.section("rope_scaling"));
    SYRINX_TRY_VOID(scaling.only(scaling.has("rope_type") ? "rope_type" : "type", "default"));
  }
  return t;
}

Result<CodecDecoderConfig> read_decoder(const JsonSection& from) {
  CodecDecoderConfig c;
  SYRINX_TRY(c.transformer, read_transformer(from, "silu", "rms_norm_eps"));
  SYRINX_TRY(c.codebooks, from.whole("num_quantizers"));
  SYRINX_TRY_VOID(from.only("num_semantic_quantizers", size_t{1}));
  SYRINX_TRY(c.codebook_size, from.whole("codebook_size"));
  SYRINX_TRY(c.codebook_dim, from.whole("codebook_dim"));
  SYRINX_TRY(c.latent, from.whole("latent_dim"));
  SYRINX_TRY(c.width, from.whole("decoder_dim"));
  SYRINX_TRY(c.ratios, from.wholes("upsampling_ratios", kMaxCodecRatios, kMaxCodecRatio));
  SYRINX_TRY(c.rates, from.wholes("upsample_rates", kMaxCodecRatios, kMaxCodecRatio));
  return c;
}

Result<CodecEncoderConfig> read_encoder(const JsonSection& from) {
  CodecEncoderConfig c;
  SYRINX_TRY(c.transformer, read_transformer(from, "gelu", "norm_eps"));
  c.width = c.transformer.width;
  SYRINX_TRY(c.filters, from.whole("num_filters"));
  SYRINX_TRY(c.kernel, from.whole("kernel_size"));
  SYRINX_TRY(c.last_kernel, from.whole("last_kernel_size"));
  SYRINX_TRY(c.residual_kernel, from.whole("residual_kernel_size"));
  SYRINX_TRY(c.residual_layers, from.whole("num_residual_layers"));
  SYRINX_TRY(c.dilation_base, from.whole("dilation_growth_rate"));
  SYRINX_TRY(c.compress, from.whole("compress"));
  SYRINX_TRY(c.ratios, from.wholes("upsampling_ratios", kMaxCodecRatios, kMaxCodecRatio));
  SYRINX_TRY(c.codebooks, from.whole("num_quantizers"));
  SYRINX_TRY_VOID(from.only("num_semantic_quantizers", size_t{1}));
  SYRINX_TRY(c.codebook_size, from.whole("codebook_size"));
  SYRINX_TRY(c.row_width, from.whole("codebook_dim"));
  SYRINX_TRY_VOID(from.only("vector_quantization_hidden_dimension", c.row_width));
  SYRINX_TRY_VOID(from.only("audio_channels", size_t{1}));
  SYRINX_TRY_VOID(from.only("use_causal_conv", true));
  SYRINX_TRY_VOID(from.only("pad_mode", "constant"));
  SYRINX_TRY_VOID(from.only("use_conv_shortcut", false));
  return c;
}

class Check {
 public:
  explicit Check(const std::string& name) : name_(name) {}

  Status within(const std::string& field, size_t value, size_t least, size_t most) const {
    if (value >= least && value <= most) return {};
    return fail(Code::kUnsupported, "'{}': {} is {}, it must be from {} to {}", name_, field, value, least, most);
  }
  Status equal(const std::string& field, size_t value, const std::string& other, size_t expected) const {
    if (value == expected) return {};
    return fail(Code::kUnsupported, "'{}': {} is {}, but {} gives {}; they must be equal", name_, field, value, other,
                expected);
  }
  Status ratios(const std::string& field, const std::vector<size_t>& ratios) const {
    SYRINX_TRY_VOID(within("the number of " + field, ratios.size(), 1, kMaxCodecRatios));
    for (const size_t ratio : ratios) SYRINX_TRY_VOID(within("one of " + field, ratio, 1, kMaxCodecRatio));
    return {};
  }
  // `rows`: positions of a frame.
  Status transformer(const std::string& in, const CodecTransformer& t, size_t rows) const {
    SYRINX_TRY_VOID(within(in + "hidden_size", t.width, 1, kMaxCodecWidth));
    SYRINX_TRY_VOID(within(in + "num_hidden_layers", t.layers, 1, kMaxCodecLayers));
    SYRINX_TRY_VOID(within(in + "num_attention_heads", t.heads, 1, kMaxCodecWidth));
    SYRINX_TRY_VOID(within(in + "num_key_value_heads", t.key_heads, 1, t.heads));
    SYRINX_TRY_VOID(within(in + "head_dim", t.head_size, 2, kMaxCodecWidth / t.heads));
    SYRINX_TRY_VOID(within(in + "intermediate_size", t.hidden, 1, kMaxCodecWidth));
    SYRINX_TRY_VOID(within(in + "sliding_window", t.window, 1, kMaxCodecWindow));
    if (t.heads % t.key_heads != 0 || t.head_size % 2 != 0)
      return fail(Code::kUnsupported,
                  "'{}': {}num_attention_heads of {} with {} key heads of head_dim {}; heads must "
                  "share keys evenly and be of even width",
                  name_, in, t.heads, t.key_heads, t.head_size);
    const size_t bytes =
        2 * sizeof(float) * t.layers * (t.window - 1 + kMaxCodecPassFrames * rows) * t.key_heads * t.head_size;
    SYRINX_TRY_VOID(within("the memory of " + in + "sliding_window in bytes", bytes, 1, nn::kMaxCacheBytes));
    if (!(t.epsilon > 0.0f && t.epsilon < 1.0f) || !(t.period > 1.0f) || !std::isfinite(t.period))
      return fail(Code::kUnsupported, "'{}': {}rope_theta of {} and a norm's epsilon of {} make no transformer", name_,
                  in, t.period, t.epsilon);
    return {};
  }

 private:
  const std::string& name_;
};

Status check_decoder(const CodecDecoderConfig& c, const Check& check) {
  const std::string in = "decoder_config.";
  SYRINX_TRY_VOID(check.transformer(in, c.transformer, 1));
  SYRINX_TRY_VOID(check.within(in + "num_quantizers", c.codebooks, 2, kMaxCodebooks));
  SYRINX_TRY_VOID(check.within(in + "codebook_size", c.codebook_size, 1, kMaxCodebookSize));
  SYRINX_TRY_VOID(check.within(in + "codebook_dim", c.codebook_dim, 2, kMaxCodecWidth));
  SYRINX_TRY_VOID(check.equal(in + "codebook_dim", c.codebook_dim, "twice the width of a codebook", 2 * c.row_width()));
  SYRINX_TRY_VOID(check.within(in + "latent_dim", c.latent, 1, kMaxCodecWidth));
  SYRINX_TRY_VOID(check.ratios(in + "upsampling_ratios", c.ratios));
  SYRINX_TRY_VOID(check.ratios(in + "upsample_rates", c.rates));
  SYRINX_TRY_VOID(check.within("the product of " + in + "upsampling_ratios", c.positions(), 1, kMaxCodecRatio));
  const size_t halvings = size_t{1} << c.rates.size();
  SYRINX_TRY_VOID(check.within(in + "decoder_dim", c.width, halvings, kMaxCodecWidth));
  return check.equal(in + "decoder_dim", c.width, "what upsample_rates halve to whole channels",
                     c.width / halvings * halvings);
}

Status check_encoder(const CodecEncoderConfig& c, const Check& check) {
  const std::string in = "encoder_config.";
  SYRINX_TRY_VOID(check.transformer(in, c.transformer, c.downsample));
  SYRINX_TRY_VOID(check.equal(in + "hidden_size", c.width, "the transformer", c.transformer.width));
  SYRINX_TRY_VOID(check.ratios(in + "upsampling_ratios", c.ratios));
  SYRINX_TRY_VOID(check.within(in + "num_filters", c.filters, 1, kMaxCodecWidth >> c.ratios.size()));
  SYRINX_TRY_VOID(check.within(in + "kernel_size", c.kernel, 1, kMaxCodecKernel));
  SYRINX_TRY_VOID(check.within(in + "last_kernel_size", c.last_kernel, 1, kMaxCodecKernel));
  SYRINX_TRY_VOID(check.within(in + "residual_kernel_size", c.residual_kernel, 1, kMaxCodecKernel));
  SYRINX_TRY_VOID(check.within(in + "num_residual_layers", c.residual_layers, 1, kMaxCodecResidualLayers));
  SYRINX_TRY_VOID(check.within(in + "dilation_growth_rate", c.dilation_base, 1, 4));
  SYRINX_TRY_VOID(check.within(in + "compress", c.compress, 1, c.filters));
  size_t reach = c.residual_kernel - 1;
  for (size_t i = 1; i < c.residual_layers; ++i) reach *= c.dilation_base;
  SYRINX_TRY_VOID(check.within("the reach of " + in + "residual_kernel_size", reach, 0, kMaxCodecReach));
  SYRINX_TRY_VOID(check.within(in + "num_quantizers", c.codebooks, 2, kMaxCodebooks));
  SYRINX_TRY_VOID(check.within("encoder_valid_num_quantizers", c.used_codebooks, 2, c.codebooks));
  SYRINX_TRY_VOID(check.within(in + "codebook_size", c.codebook_size, 1, kMaxCodebookSize));
  SYRINX_TRY_VOID(check.within(in + "codebook_dim", c.row_width, 1, kMaxCodecWidth));
  // With equal widths the maker leaves the projections out.
  if (c.row_width == c.width) return check.within(in + "codebook_dim", c.row_width, 1, c.width - 1);
  return {};
}

}  // namespace

size_t CodecDecoderConfig::positions() const { return product(ratios); }
size_t CodecDecoderConfig::frame_samples() const { return product(ratios) * product(rates); }
size_t CodecEncoderConfig::hop() const { return product(ratios); }

Status check(const CodecConfig& config, const std::string& name) {
  const Check check(name);
  SYRINX_TRY_VOID(check.within("output_sample_rate", config.sample_rate, 1000, 384000));
  SYRINX_TRY_VOID(check.within("decode_upsample_rate", config.frame_samples, 1, kMaxCodecFrameSamples));
  SYRINX_TRY_VOID(check_decoder(config.decoder, check));
  SYRINX_TRY_VOID(check_encoder(config.encoder, check));
  SYRINX_TRY_VOID(check.equal("decode_upsample_rate", config.frame_samples,
                              "the product of decoder_config.upsampling_ratios and upsample_rates",
                              config.decoder.frame_samples()));
  SYRINX_TRY_VOID(check.equal("encode_downsample_rate", config.frame_samples,
                              "twice the product of encoder_config.upsampling_ratios", config.encoder.frame_samples()));
  SYRINX_TRY_VOID(check.equal("encoder_valid_num_quantizers", config.encoder.used_codebooks,
                              "decoder_config.num_quantizers", config.decoder.codebooks));
  return check.equal("encoder_config.codebook_size", config.encoder.codebook_size, "decoder_config.codebook_size",
                     config.decoder.codebook_size);
}

Result<CodecConfig> read_codec_config(std::string_view json, const std::string& name) {
  SYRINX_TRY(const Json root, parse_json(json, name, kJsonLimits));
  SYRINX_TRY(const JsonSection file, JsonSection::root(root, name));
  SYRINX_TRY_VOID(file.word("model_type"));
  SYRINX_TRY_VOID(file.only("model_type", kKind));
  CodecConfig config;
  SYRINX_TRY(config.sample_rate, file.whole("output_sample_rate"));
  SYRINX_TRY_VOID(file.only("input_sample_rate", config.sample_rate));
  SYRINX_TRY(config.frame_samples, file.whole("decode_upsample_rate"));
  SYRINX_TRY_VOID(file.only("encode_downsample_rate", config.frame_samples));
  SYRINX_TRY(const JsonSection decoder, file.section("decoder_config"));
  SYRINX_TRY(config.decoder, read_decoder(decoder));
  SYRINX_TRY(const JsonSection encoder, file.section("encoder_config"));
  SYRINX_TRY(config.encoder, read_encoder(encoder));
  SYRINX_TRY(config.encoder.used_codebooks, file.whole("encoder_valid_num_quantizers"));
  SYRINX_TRY_VOID(encoder.only("sampling_rate", config.sample_rate));
  SYRINX_TRY_VOID(check(config, name));
  const double frame_rate = static_cast<double>(config.sample_rate) / static_cast<double>(config.frame_samples);
  for (const char* const key : {"_frame_rate", "frame_rate"}) {
    SYRINX_TRY(const float rate, encoder.number_or(key, static_cast<float>(frame_rate), 0, kAnyNumber));
    if (rate != static_cast<float>(frame_rate))
      return fail(Code::kUnsupported, "'{}': encoder_config.{} is {}, but {} samples a second make {} frames of {}",
                  name, key, rate, config.sample_rate, frame_rate, config.frame_samples);
  }
  return config;
}

}  // namespace syrinx::qwen_tts
