#include "models/qwen_tts/codec_config.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace syrinx::qwen_tts {
namespace {

std::string published() {
  std::ifstream file(std::string(SYRINX_TEST_DATA) + "/qwen_tts/speech_tokenizer/config.json");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The file with the first `from` behind `section` replaced.
std::string with(const std::string& section, const std::string& from, const std::string& to) {
  std::string text = published();
  const size_t at = text.find(from, section.empty() ? 0 : text.find(section));
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

void expect_error(const std::string& json, Code code, const std::string& words) {
  const auto read = read_codec_config(json, "config.json");
  ASSERT_FALSE(read.has_value()) << words;
  EXPECT_EQ(read.error().code, code) << read.error().message;
  EXPECT_NE(read.error().message.find(words), std::string::npos) << read.error().message;
}

TEST(QwenCodecConfig, ReadsBothHalves) {
  const auto read = read_codec_config(published(), "config.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->sample_rate, 24000u);
  EXPECT_EQ(read->frame_samples, 1920u);
  EXPECT_EQ(read->decoder.codebooks, 16u);
  EXPECT_EQ(read->decoder.codebook_size, 32u);
  EXPECT_EQ(read->decoder.row_width(), 8u);
  EXPECT_EQ(read->decoder.positions(), 4u);
  EXPECT_EQ(read->decoder.rates, (std::vector<size_t>{8, 5, 4, 3}));
  EXPECT_EQ(read->decoder.transformer.window, 8u);
  EXPECT_EQ(read->decoder.transformer.head_size, 16u);
  EXPECT_EQ(read->encoder.ratios, (std::vector<size_t>{8, 6, 5, 4}));
  EXPECT_EQ(read->encoder.codebooks, 17u);
  EXPECT_EQ(read->encoder.used_codebooks, 16u);
  EXPECT_EQ(read->encoder.frame_samples(), 1920u);
  EXPECT_EQ(read->encoder.transformer.window, 250u);
}

TEST(QwenCodecConfig, AbsentFieldsTakeDefaults) {
  const auto read = read_codec_config(with("", R"("head_dim": 16,)", ""), "config.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->decoder.transformer.head_size, 8u);
  EXPECT_TRUE(read_codec_config(with("", R"("rms_norm_eps": 1e-05,)", ""), "config.json").has_value());
  EXPECT_TRUE(read_codec_config(with("encoder_config", R"("_frame_rate": 12.5,)", ""), "config.json").has_value());
}

TEST(QwenCodecConfig, MissingFieldsAreNamed) {
  expect_error("[]", Code::kDataLoss, "not a JSON object");
  expect_error("{}", Code::kDataLoss, "model_type");
  expect_error(with("", R"("latent_dim": 32,)", ""), Code::kDataLoss, "decoder_config.latent_dim");
  expect_error(with("encoder_config", R"("num_filters": 2,)", ""), Code::kDataLoss, "encoder_config.num_filters");
  expect_error(with("", R"("decoder_config")", R"("other")"), Code::kDataLoss, "decoder_config");
  expect_error(with("", R"("latent_dim": 32)", R"("latent_dim": "32")"), Code::kDataLoss, "not a whole number");
  expect_error(with("", R"("latent_dim": 32)", R"("latent_dim": -32)"), Code::kDataLoss, "not a whole number");
}

TEST(QwenCodecConfig, OtherKindsAreRefused) {
  expect_error(with("", "qwen3_tts_tokenizer_12hz", "qwen3_tts_tokenizer_25hz"), Code::kUnsupported, "25hz");
  expect_error(with("", R"("silu")", R"("gelu")"), Code::kUnsupported, "decoder_config.hidden_act is 'gelu'");
  expect_error(with("", R"("attention_bias": false)", R"("attention_bias": true)"), Code::kUnsupported,
               "attention_bias must be false");
  expect_error(with("", R"("num_semantic_quantizers": 1)", R"("num_semantic_quantizers": 2)"), Code::kUnsupported,
               "decoder_config.num_semantic_quantizers is 2");
  expect_error(with("", R"("use_causal_conv": true)", R"("use_causal_conv": false)"), Code::kUnsupported,
               "use_causal_conv must be true");
  expect_error(with("", R"("pad_mode": "constant")", R"("pad_mode": "reflect")"), Code::kUnsupported, "'reflect'");
  expect_error(with("", R"("head_dim": 16,)", R"("head_dim": 16, "rope_scaling": {"type": "yarn"},)"),
               Code::kUnsupported, "decoder_config.rope_scaling.type is 'yarn'");
}

TEST(QwenCodecConfig, DimensionsAreBounded) {
  for (const char* const field :
       {"hidden_size", "intermediate_size", "num_attention_heads", "head_dim", "codebook_size", "codebook_dim",
        "latent_dim", "sliding_window", "num_quantizers", "decoder_dim"}) {
    const std::string text = published();
    const size_t at = text.find(fmt::format("\"{}\": ", field)), end = text.find(',', at);
    const size_t brace = std::min(end, text.find('\n', at));
    for (const char* const value : {"0", "9000000000000000000"})
      expect_error(std::string(text).replace(at, brace - at, fmt::format("\"{}\": {}", field, value)),
                   Code::kUnsupported, field);
  }
  expect_error(with("", R"("decoder_dim": 32)", R"("decoder_dim": 40)"), Code::kUnsupported, "decoder_dim is 40");
  expect_error(with("", R"("codebook_dim": 16)", R"("codebook_dim": 17)"), Code::kUnsupported, "codebook_dim is 17");
  expect_error(with("", R"("rope_theta": 10000)", R"("rope_theta": 0)"), Code::kUnsupported, "rope_theta of 0");
}

TEST(QwenCodecConfig, RatesThatContradictAreRefused) {
  expect_error(with("", R"("decode_upsample_rate": 1920)", R"("decode_upsample_rate": 960)"), Code::kUnsupported,
               "encode_downsample_rate is 1920, only 960");
  expect_error(with("upsample_rates", "8", "7"), Code::kUnsupported, "but the product of decoder_config");
  expect_error(with("upsample_rates", "8", "0"), Code::kUnsupported, "decoder_config.upsample_rates has an element");
  expect_error(with("upsample_rates", "8", "8, 1, 1, 1, 1, 1"), Code::kUnsupported,
               "upsample_rates has 9 numbers, not 1 to 8");
  expect_error(with("encoder_config", "8,", "4,"), Code::kUnsupported, "encoder_config.upsampling_ratios");
  expect_error(with("", "12.5", "25"), Code::kUnsupported, "_frame_rate is 25");
  expect_error(with("encoder_config", R"("sampling_rate": 24000)", R"("sampling_rate": 16000)"), Code::kUnsupported,
               "encoder_config.sampling_rate is 16000");
  expect_error(with("", R"("encoder_valid_num_quantizers": 16)", R"("encoder_valid_num_quantizers": 17)"),
               Code::kUnsupported, "encoder_valid_num_quantizers is 17");
}

}  // namespace
}  // namespace syrinx::qwen_tts
