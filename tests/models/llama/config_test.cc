#include "models/llama/config.h"

#include <gtest/gtest.h>

#include "gguf_bytes.h"

namespace syrinx::llama {
namespace {

using test::GgufBytes;

constexpr uint32_t kU32 = 4, kF32 = 6, kString = 8;

std::string with(const std::string& more, const std::string& type = "llama") {
  return R"({"model_type": ")" + type +
         R"(", "hidden_size": 576, "num_hidden_layers": 30, "intermediate_size": 1536, "num_attention_heads": 9,)"
         R"("num_key_value_heads": 3, "vocab_size": 49152, "max_position_embeddings": 8192, "rope_theta": 100000)" +
         more + "}";
}
void expect_error(const std::string& json, Code code, const std::string& words) {
  const auto read = read_config(json, "config.json");
  ASSERT_FALSE(read.has_value()) << words;
  EXPECT_EQ(read.error().code, code) << read.error().message;
  EXPECT_NE(read.error().message.find(words), std::string::npos) << read.error().message;
}

TEST(LlamaConfig, ReadsTransformersFile) {
  const auto read = read_config(with(R"(, "tie_word_embeddings": true, "rms_norm_eps": 1e-05)"), "config.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->head_size, 64u);
  EXPECT_EQ(read->key_heads, 3u);
  EXPECT_EQ(read->period, 100000.0f);
  EXPECT_EQ(read->epsilon, 1e-5f);
  EXPECT_TRUE(read->tied_head);
  EXPECT_FALSE(read->attention_bias);
  EXPECT_TRUE(read_config(with("", "qwen2"), "config.json")->attention_bias);
  EXPECT_TRUE(read_config(with("", "qwen3"), "config.json")->head_norm());
}

TEST(LlamaConfig, FadesLlama3Scaling) {
  const auto read =
      read_config(with(R"(, "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})"),
                  "config.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->frequency_factors.size(), 32u);
  EXPECT_EQ(read->frequency_factors.front(), 1.0f);
  EXPECT_EQ(read->frequency_factors.back(), 32.0f);
  EXPECT_TRUE(std::is_sorted(read->frequency_factors.begin(), read->frequency_factors.end()));
}

TEST(LlamaConfig, ScalesPositionsLinearly) {
  for (const char* const key : {"rope_scaling", "rope_parameters"}) {
    const auto read =
        read_config(with(fmt::format(R"(, "{}": {{"rope_type": "linear", "factor": 2.5}})", key)), "config.json");
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(read->frequency_factors, std::vector<float>(32, 2.5f));
  }
}

TEST(LlamaConfig, UnknownPartsAreRefused) {
  expect_error(with("", "mixtral"), Code::kUnsupported, "of the architecture 'mixtral', only llama, qwen2 or qwen3");
  expect_error(with(R"(, "rope_scaling": {"type": "yarn", "factor": 4})"), Code::kUnsupported, "'yarn'");
  expect_error(with(R"(, "hidden_act": "gelu")"), Code::kUnsupported, "hidden_act");
  expect_error(with(R"(, "use_sliding_window": true)"), Code::kUnsupported, "use_sliding_window");
  expect_error(with(R"(, "mlp_bias": true)"), Code::kUnsupported, "mlp_bias");
  expect_error(with(R"(, "head_dim": 63)"), Code::kUnsupported, "9 heads of 63");
  expect_error(with(R"(, "head_dim": 4096)"), Code::kUnsupported, "head's size is 4096");
}

TEST(LlamaConfig, ContradictionsAreRefused) {
  expect_error("[]", Code::kDataLoss, "not a JSON object");
  expect_error("{}", Code::kDataLoss, "model_type");
  expect_error(R"({"model_type": "llama"})", Code::kDataLoss, "num_hidden_layers");
  expect_error(with(R"(, "rms_norm_eps": 0)"), Code::kDataLoss, "epsilon of 0");
  expect_error(with(R"(, "rms_norm_eps": "1")"), Code::kDataLoss, "rms_norm_eps is not a number");
  expect_error(with(R"(, "tie_word_embeddings": 1)"), Code::kDataLoss, "not true or false");
  expect_error(with(R"(, "head_dim": -1)"), Code::kDataLoss, "head_dim is not a whole number");
  expect_error(with(R"(, "rope_scaling": 3)"), Code::kDataLoss, "rope_scaling is not an object");
  expect_error(with(R"(, "rope_scaling": {"rope_type": "linear", "factor": -2})"), Code::kDataLoss, "by -2");
  expect_error(with(R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8, "high_freq_factor": 0.5})"),
               Code::kDataLoss, "contradict");
}

GgufBytes smollm() {
  GgufBytes file;
  file.entries = {GgufBytes::entry("general.architecture", kString, GgufBytes::string("llama")),
                  GgufBytes::number<uint32_t>("llama.block_count", kU32, 30),
                  GgufBytes::number<uint32_t>("llama.context_length", kU32, 8192),
                  GgufBytes::number<uint32_t>("llama.embedding_length", kU32, 64),
                  GgufBytes::number<uint32_t>("llama.feed_forward_length", kU32, 96),
                  GgufBytes::number<uint32_t>("llama.attention.head_count", kU32, 4),
                  GgufBytes::number<uint32_t>("llama.attention.head_count_kv", kU32, 2),
                  GgufBytes::number<float>("llama.rope.freq_base", kF32, 100000.0f),
                  GgufBytes::number<float>("llama.attention.layer_norm_rms_epsilon", kF32, 1e-5f)};
  file.tensors = {{"token_embd.weight", {64, 2}, 0, 0}, {"rope_freqs.weight", {8}, 0, 512}};
  file.blocks = std::string(512, '\0');
  for (int i = 0; i < 8; ++i) GgufBytes::append(file.blocks, 1.0f + static_cast<float>(i));
  return file;
}
Result<Config> read(const GgufBytes& made) {
  const std::string bytes = made.file();
  const auto file = GgufFile::parse(std::as_bytes(std::span(bytes)), "a.gguf");
  EXPECT_TRUE(file.has_value()) << (file ? "" : file.error().message);
  if (!file) return tl::unexpected(file.error());
  return read_config(*file, "a.gguf");
}
void expect_error(const GgufBytes& made, Code code, const std::string& words) {
  const auto config = read(made);
  ASSERT_FALSE(config.has_value()) << words;
  EXPECT_EQ(config.error().code, code) << config.error().message;
  EXPECT_NE(config.error().message.find(words), std::string::npos) << config.error().message;
}

TEST(LlamaConfig, ReadsEntriesOfGguf) {
  const auto config = read(smollm());
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->vocabulary, 2u);
  EXPECT_EQ(config->head_size, 16u);
  EXPECT_TRUE(config->tied_head);
  EXPECT_EQ(config->period, 100000.0f);
  EXPECT_EQ(config->frequency_factors, (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(LlamaConfig, ScalesPositionsAsLlamaCpp) {
  const auto with = [](std::vector<std::string> entries, bool tensor) {
    GgufBytes file = smollm();
    if (!tensor) file.tensors.pop_back();
    file.entries.insert(file.entries.end(), entries.begin(), entries.end());
    const auto config = read(file);
    EXPECT_TRUE(config.has_value());
    return config ? config->frequency_factors : std::vector<float>();
  };
  const std::string linear = GgufBytes::entry("llama.rope.scaling.type", kString, GgufBytes::string("linear"));
  const std::string none = GgufBytes::entry("llama.rope.scaling.type", kString, GgufBytes::string("none"));
  const std::string factor = GgufBytes::number<float>("llama.rope.scaling.factor", kF32, 4.0f);
  const std::string older = GgufBytes::number<float>("llama.rope.scale_linear", kF32, 2.0f);
  EXPECT_EQ(with({linear, factor}, false), std::vector<float>(8, 4.0f));
  EXPECT_EQ(with({factor, older}, false), std::vector<float>(8, 4.0f));
  EXPECT_EQ(with({older}, false), std::vector<float>(8, 2.0f));
  EXPECT_EQ(with({none, factor}, false), std::vector<float>());
  EXPECT_EQ(with({GgufBytes::number<float>("llama.rope.scaling.factor", kF32, 0.0f)}, false), std::vector<float>());
  EXPECT_EQ(with({factor}, true), (std::vector<float>{4, 8, 12, 16, 20, 24, 28, 32}));
}

TEST(LlamaConfig, RefusesGgufOfOtherModels) {
  GgufBytes file = smollm();
  file.entries[0] = GgufBytes::entry("general.architecture", kString, GgufBytes::string("gemma3"));
  expect_error(file, Code::kUnsupported, "'gemma3'");
  file.entries.erase(file.entries.begin());
  expect_error(file, Code::kDataLoss, "general.architecture");
  file = smollm();
  file.entries.erase(file.entries.begin() + 1);
  expect_error(file, Code::kDataLoss, "llama.block_count");
  file = smollm();
  file.tensors[0].name = "other";
  expect_error(file, Code::kDataLoss, "token_embd.weight is missing");
  file = smollm();
  file.tensors[1].dims = {4};
  expect_error(file, Code::kDataLoss, "rope_freqs.weight has the shape [4]");
  for (const auto& [key, value] : {std::pair{"llama.expert_count", 8u},
                                   {"llama.attention.sliding_window", 4096u},
                                   {"llama.rope.dimension_count", 8u},
                                   {"llama.attention.value_length", 32u}}) {
    file = smollm();
    file.entries.push_back(GgufBytes::number<uint32_t>(key, kU32, value));
    expect_error(file, Code::kUnsupported, "no experts");
  }
  file = smollm();
  file.entries.push_back(GgufBytes::entry("llama.rope.scaling.type", kString, GgufBytes::string("yarn")));
  expect_error(file, Code::kUnsupported, "'yarn'");
  file = smollm();
  file.entries.pop_back();
  expect_error(file, Code::kDataLoss, "epsilon of 0");
  file = smollm();
  file.entries[5] = GgufBytes::number<uint32_t>("llama.attention.head_count", kU32, 0);
  expect_error(file, Code::kUnsupported, "number of heads is 0");
}

}  // namespace
}  // namespace syrinx::llama
