#include "models/qwen_tts/config.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/json.h"

namespace syrinx::qwen_tts {
namespace {

std::string content(const std::string& kind, const std::string& name = "config.json") {
  std::ifstream file(fmt::format("{}/qwen_tts/{}/{}", SYRINX_TEST_DATA, kind, name));
  EXPECT_TRUE(file.good()) << kind << "/" << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

Config config_of(const std::string& kind) {
  auto config = read_config(content(kind), "config.json");
  EXPECT_TRUE(config.has_value()) << (config ? "" : config.error().message);
  return config ? *std::move(config) : Config{};
}

Json* member(Json& object, std::string_view key) {
  Json::Object* const members = object.object();
  if (members == nullptr) return nullptr;
  for (JsonMember& one : *members)
    if (one.key == key) return &one.value;
  return nullptr;
}

// The value at "a/b/c" in the text, replaced by the JSON `value`, or without it where that is empty.
std::string changed(const std::string& text, std::string path, const std::string& value) {
  auto root = parse_json(text, "test");
  EXPECT_TRUE(root.has_value());
  Json* at = &*root;
  for (size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/')) {
    at = member(*at, path.substr(0, slash));
    if (at == nullptr) return "no " + path;
    path.erase(0, slash + 1);
  }
  if (value.empty()) {
    std::erase_if(*at->object(), [&](const JsonMember& one) { return one.key == path; });
  } else if (Json* const known = member(*at, path)) {
    *known = *parse_json(value, "test");
  } else {
    at->set(path, *parse_json(value, "test"));
  }
  return root->dump();
}

struct Mutation {
  std::string path, value;
  Code code;
  std::string words;
};

TEST(QwenTtsConfig, ReadsCustomVoice) {
  const Config c = config_of("custom_voice");
  EXPECT_EQ(c.kind, Kind::kCustomVoice);
  EXPECT_EQ(c.talker.width, 32u);
  EXPECT_EQ(c.talker.head_size, 16u);
  EXPECT_EQ(c.talker.key_heads, 2u);
  EXPECT_EQ(c.talker.period, 1e6f);
  EXPECT_EQ(c.predictor.hidden, 64u);
  EXPECT_FALSE(c.projects_predictor());
  EXPECT_EQ(c.codes(), 32u);
  EXPECT_EQ(c.codebooks, 16u);
  EXPECT_EQ(c.codec.eos, 34);
  EXPECT_EQ(c.text.bos, 278);
  EXPECT_EQ(c.languages.size(), 12u);
  ASSERT_NE(c.language("English"), nullptr);
  EXPECT_EQ(c.language("English")->id, 65);
  EXPECT_TRUE(c.language("sichuan_dialect")->is_dialect());
  ASSERT_NE(c.speaker("ERIC"), nullptr);
  EXPECT_EQ(c.speaker("eric")->dialect, "sichuan_dialect");
  EXPECT_EQ(c.speaker("ryan")->dialect, "");
  EXPECT_EQ(c.speaker("nobody"), nullptr);
  EXPECT_FALSE(c.speaker_encoder.has_value());
  EXPECT_FALSE(c.takes_instruction());
}

TEST(QwenTtsConfig, ReadsBaseAndVoiceDesign) {
  const Config base = config_of("base");
  EXPECT_EQ(base.kind, Kind::kBase);
  EXPECT_TRUE(base.speakers.empty());
  ASSERT_TRUE(base.speaker_encoder.has_value());
  EXPECT_EQ(base.speaker_encoder->width, 32u);
  EXPECT_EQ(base.speaker_encoder->mels, 128u);
  EXPECT_EQ(base.speaker_encoder->channels, (std::vector<size_t>{16, 16, 16, 16, 48}));
  EXPECT_EQ(base.speaker_encoder->kernels, (std::vector<size_t>{5, 3, 3, 3, 1}));
  const Config design = config_of("voice_design");
  EXPECT_EQ(design.kind, Kind::kVoiceDesign);
  EXPECT_TRUE(design.projects_predictor());
  EXPECT_TRUE(design.takes_instruction());
}

TEST(QwenTtsConfig, SpeakerIdMayBeList) {
  const auto read = read_config(changed(content("custom_voice"), "talker_config/spk_id/ryan", "[7]"), "config.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->speaker("ryan")->id, 7);
}

TEST(QwenTtsConfig, BadFilesAreRefused) {
  const std::string talker = "talker_config/", predictor = talker + "code_predictor_config/";
  const Mutation mutations[] = {
      {"model_type", "\"qwen2\"", Code::kUnsupported, "'qwen2', not qwen3_tts"},
      {"tokenizer_type", "\"qwen3_tts_tokenizer_25hz\"", Code::kUnsupported, "25hz"},
      {"tts_model_type", "\"song\"", Code::kUnsupported, "'song'"},
      {"tts_model_type", "\"base\"", Code::kDataLoss, "speaker_encoder_config is missing"},
      {"talker_config", "3", Code::kDataLoss, "talker_config is not an object"},
      {"talker_config", "", Code::kDataLoss, "talker_config is missing"},
      {"tts_pad_token_id", "352", Code::kDataLoss, "tts_pad_token_id is 352; it must be from 0 to 351"},
      {"im_start_token_id", "-1", Code::kDataLoss, "not a whole number"},
      {talker + "hidden_size", "", Code::kDataLoss, "talker_config.hidden_size is missing"},
      {talker + "hidden_size", "99999", Code::kUnsupported, "hidden_size is 99999"},
      {talker + "hidden_size", "32.5", Code::kDataLoss, "not a whole number"},
      {talker + "head_dim", "7", Code::kUnsupported, "4 of 7 numbers"},
      {talker + "head_dim", "", Code::kDataLoss, "head_dim is missing"},
      {talker + "num_attention_heads", "3", Code::kUnsupported, "share keys evenly"},
      {talker + "num_hidden_layers", "0", Code::kUnsupported, "num_hidden_layers is 0"},
      {talker + "hidden_act", "\"gelu\"", Code::kUnsupported, "'gelu'"},
      {talker + "attention_bias", "true", Code::kUnsupported, "attention_bias"},
      {talker + "use_sliding_window", "1", Code::kDataLoss, "not true or false"},
      {talker + "rms_norm_eps", "0", Code::kUnsupported, "rms_norm_eps is 0"},
      {talker + "rope_theta", "\"1\"", Code::kDataLoss, "rope_theta is not a number"},
      {talker + "rope_scaling/rope_type", "\"yarn\"", Code::kUnsupported, "rope_scaling.rope_type is 'yarn'"},
      {talker + "rope_scaling", "[]", Code::kDataLoss, "rope_scaling is not an object"},
      {talker + "vocab_size", "1024", Code::kUnsupported, "vocab_size is 1024; it must be from 1025"},
      {talker + "codec_eos_token_id", "31", Code::kDataLoss, "is 31, which is a code"},
      {talker + "codec_think_id", "1056", Code::kDataLoss, "codec_think_id is 1056"},
      {talker + "num_code_groups", "15", Code::kDataLoss, "num_code_groups is 16, the talker's 15"},
      {talker + "codec_language_id/english", "4096", Code::kDataLoss, "no id from 0 to 1055 for 'english'"},
      {talker + "codec_language_id/ENGLISH", "5", Code::kDataLoss, "twice"},
      {talker + "codec_language_id", "[]", Code::kDataLoss, "codec_language_id is not an object"},
      {talker + "spk_id/ryan", "[7, 8]", Code::kDataLoss, "'ryan'"},
      {talker + "spk_id/ryan", "-7", Code::kDataLoss, "'ryan'"},
      {talker + "spk_is_dialect/ryan", "\"klingon\"", Code::kDataLoss, "neither false nor a language for 'ryan'"},
      {talker + "spk_is_dialect/ryan", "true", Code::kDataLoss, "neither false nor a language for 'ryan'"},
      {predictor + "layer_types", "[\"sliding_attention\"]", Code::kUnsupported, "full_attention"},
      {predictor + "max_position_embeddings", "15", Code::kDataLoss, "16 positions of a frame"},
      {predictor + "vocab_size", "0", Code::kUnsupported, "code_predictor_config.vocab_size is 0"},
  };
  for (const Mutation& mutation : mutations) {
    const auto read = read_config(changed(content("custom_voice"), mutation.path, mutation.value), "config.json");
    ASSERT_FALSE(read.has_value()) << mutation.path << " = " << mutation.value;
    EXPECT_EQ(read.error().code, mutation.code) << read.error().message;
    EXPECT_NE(read.error().message.find(mutation.words), std::string::npos) << read.error().message;
  }
  EXPECT_EQ(read_config("[]", "config.json").error().message, "'config.json' is not a JSON object");
}

TEST(QwenTtsConfig, BadSpeakerEncodersAreRefused) {
  const std::string encoder = "speaker_encoder_config/";
  const Mutation mutations[] = {
      {encoder + "enc_dim", "48", Code::kDataLoss, "enc_dim is 48, the talker's width 32"},
      {encoder + "enc_dim", "", Code::kDataLoss, "enc_dim is missing"},
      {encoder + "enc_channels", "[16, 16]", Code::kDataLoss, "tells of 2 blocks"},
      {encoder + "enc_channels", "[]", Code::kDataLoss, "not a list of 1 to 16"},
      {encoder + "enc_channels", "[16, 16, 16, 24, 48]", Code::kUnsupported, "has 24"},
      {encoder + "enc_channels", "[16, 16, 16, 16, 64]", Code::kUnsupported, "ends with 64"},
      {encoder + "enc_channels", "[12, 12, 12, 12, 36]", Code::kUnsupported, "multiple of 8"},
      {encoder + "enc_kernel_sizes", "[5, 3, 4, 3, 1]", Code::kUnsupported, "an even one"},
      {encoder + "enc_dilations", "[1, 2, 3, 4]", Code::kDataLoss, "enc_dilations of 4"},
      {encoder + "enc_se_channels", "0", Code::kUnsupported, "enc_se_channels is 0"},
  };
  for (const Mutation& mutation : mutations) {
    const auto read = read_config(changed(content("base"), mutation.path, mutation.value), "config.json");
    ASSERT_FALSE(read.has_value()) << mutation.path << " = " << mutation.value;
    EXPECT_EQ(read.error().code, mutation.code) << read.error().message;
    EXPECT_NE(read.error().message.find(mutation.words), std::string::npos) << read.error().message;
  }
}

TEST(QwenTtsConfig, VersionTellsHowTextsAreCut) {
  const auto cuts_by_case = [](const std::string& version) {
    const auto read = read_config(changed(content("base"), "transformers_version", version), "config.json");
    EXPECT_TRUE(read.has_value()) << version;
    return read && read->cuts_by_case;
  };
  for (const char* const one :
       {"", "null", R"("")", R"("4.57.3")", R"("4.58.0.dev0")", R"("5.0.0rc1")", R"("5.0.0.dev0")"})
    EXPECT_TRUE(cuts_by_case(one)) << one;
  for (const char* const one : {R"("4.57.2")", R"("4.57")", R"("4")", R"("5")", R"("5.0.0")", R"("5.0.1rc1")", R"("x")",
                                R"(".")", R"("99999999999999999999")"})
    EXPECT_FALSE(cuts_by_case(one)) << one;
  const auto number = read_config(changed(content("base"), "transformers_version", "4"), "config.json");
  ASSERT_FALSE(number.has_value());
  EXPECT_EQ(number.error().code, Code::kDataLoss);
}

TEST(QwenTtsConfig, GenerationIgnoresIdleTemperature) {
  const auto greedy = read_generation_config(R"({"do_sample": false, "temperature": 0, "top_k": 70000})", "g.json");
  ASSERT_TRUE(greedy.has_value()) << greedy.error().message;
  EXPECT_EQ(greedy->talker.temperature, 0.9f);
  EXPECT_EQ(greedy->talker.top_k, 65536u);
  const auto other = read_generation_config(
      R"({"subtalker_dosample": false, "subtalker_temperature": -1, "max_new_tokens": 9000000000})", "g.json");
  ASSERT_TRUE(other.has_value()) << other.error().message;
  EXPECT_EQ(other->max_frames, size_t{1} << 20);
  for (const char* const bad : {R"({"subtalker_temperature": 0})", R"({"do_sample": false, "temperature": "hot"})"})
    EXPECT_FALSE(read_generation_config(bad, "g.json").has_value()) << bad;
}

TEST(QwenTtsConfig, ReadsGenerationDefaults) {
  const auto read = read_generation_config(content("base", "generation_config.json"), "generation_config.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->max_frames, 8192u);
  EXPECT_EQ(read->penalty, 1.05f);
  EXPECT_EQ(read->predictor.top_k, 50u);
  const auto own = read_generation_config(R"({"do_sample": false, "subtalker_temperature": 0.5})", "g.json");
  ASSERT_TRUE(own.has_value()) << own.error().message;
  EXPECT_FALSE(own->talker.samples);
  EXPECT_TRUE(own->predictor.samples);
  EXPECT_EQ(own->predictor.temperature, 0.5f);
  EXPECT_EQ(own->talker.temperature, 0.9f);
  EXPECT_EQ(own->max_frames, 2048u);
  for (const char* const bad : {R"({"temperature": 0})", R"({"top_p": 2})", R"({"top_k": -1})", R"({"do_sample": 1})",
                                R"({"repetition_penalty": 0})", R"({"max_new_tokens": 0})", "[]"})
    EXPECT_FALSE(read_generation_config(bad, "g.json").has_value()) << bad;
}

}  // namespace
}  // namespace syrinx::qwen_tts
