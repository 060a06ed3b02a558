#include "models/pocket_tts/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "../../base/temp_folder.h"

namespace syrinx::pocket {
namespace {

using testing::HasSubstr;

std::string file_of(const std::string& name) {
  return read_text(std::string(SYRINX_TEST_DATA) + "/pocket_tts/" + name + "/config.yaml");
}
Config config_of(const std::string& name) {
  const auto read = parse_config(file_of(name), name);
  EXPECT_TRUE(read) << read.error().message;
  if (!read) return {};
  EXPECT_EQ(read->warnings, std::vector<std::string>());
  return read->config;
}
// The file of `name` with one piece of its text replaced; the piece must be there.
std::string changed(const std::string& name, const std::string& from, const std::string& to) {
  std::string text = file_of(name);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}
void expect_fault(const std::string& text, Code code, const std::string& part) {
  const auto read = parse_config(text, "c.yaml");
  ASSERT_FALSE(read) << part;
  EXPECT_EQ(read.error().code, code) << read.error().message;
  EXPECT_THAT(read.error().message, HasSubstr(part));
  EXPECT_THAT(read.error().message, HasSubstr("'c.yaml'"));
}

TEST(ConfigFile, ReadsEnglish) {
  const Config c = config_of("english");
  EXPECT_EQ(c.flow_lm.transformer.width, 32u);
  EXPECT_EQ(c.flow_lm.transformer.layers, 2u);
  EXPECT_EQ(c.flow_lm.transformer.heads, 2u);
  EXPECT_EQ(c.flow_lm.transformer.key_heads, 2u);
  EXPECT_EQ(c.flow_lm.transformer.attention_width, 32u);
  EXPECT_EQ(c.flow_lm.transformer.key_width(), 32u);
  EXPECT_EQ(c.flow_lm.transformer.hidden, 128u);
  EXPECT_EQ(c.flow_lm.transformer.max_period, 10000.0f);
  EXPECT_EQ(c.flow_lm.transformer.window, 0u);
  EXPECT_FALSE(c.flow_lm.transformer.layer_scale);
  EXPECT_EQ(c.flow_lm.head, HeadType::kLsd);
  EXPECT_EQ(c.flow_lm.head_depth, 2u);
  EXPECT_EQ(c.flow_lm.head_width, 24u);
  EXPECT_EQ(c.flow_lm.condition, 32u);
  EXPECT_FALSE(c.flow_lm.project_condition);
  EXPECT_EQ(c.flow_lm.text_bins, 400u);
  EXPECT_EQ(c.flow_lm.text_rank, 0u);
  EXPECT_TRUE(c.flow_lm.bos_before_voice);
  EXPECT_EQ(c.flow_lm.tokenizer, TokenizerKind::kJson);
  EXPECT_EQ(c.flow_lm.tokenizer_path, "../tokenizer.json");
  EXPECT_EQ(c.weights_path, "model.safetensors");
  EXPECT_EQ(c.weights_path_without_voice_cloning, "");
  EXPECT_EQ(c.flow_lm_weights_path + c.mimi_weights_path, "");
  EXPECT_FALSE(c.text.pad_short || c.text.remove_semicolons);
  EXPECT_TRUE(c.text.terminal_punctuation && c.text.capitalize);
  EXPECT_EQ(c.text.replace, (decltype(c.text.replace){{U'’', U"'"}, {U'‘', U"'"}}));
  EXPECT_EQ(c.temperature, 0.3f);
  EXPECT_EQ(c.eos_threshold, -4.0f);
  EXPECT_FALSE(c.frames_after_eos);
}

TEST(ConfigFile, ReadsTheCodec) {
  const Config c = config_of("english");
  EXPECT_EQ(c.mimi.sample_rate, 24000u);
  EXPECT_EQ(c.mimi.frame_rate, 12.5);
  EXPECT_EQ(c.mimi.frame_samples(), 1920u);
  EXPECT_EQ(c.mimi.resample_stride(), 16u);
  EXPECT_EQ(c.mimi.latent, 32u);
  EXPECT_EQ(c.mimi.inner_width, 8u);
  EXPECT_EQ(c.mimi.outer_width, 16u);
  EXPECT_EQ(c.mimi.encoder.width, 16u);
  EXPECT_EQ(c.mimi.encoder.filters, 4u);
  EXPECT_EQ(c.mimi.encoder.kernel, 7u);
  EXPECT_EQ(c.mimi.encoder.last_kernel, 3u);
  EXPECT_EQ(c.mimi.encoder.residual_kernel, 3u);
  EXPECT_EQ(c.mimi.encoder.compress, 2u);
  EXPECT_EQ(c.mimi.encoder.residual_layers, 1u);
  EXPECT_EQ(c.mimi.encoder.dilation_base, 2u);
  EXPECT_EQ(c.mimi.encoder.ratios, (std::vector<size_t>{6, 5, 4}));
  EXPECT_EQ(c.mimi.decoder.filters, 4u);
  EXPECT_EQ(c.mimi.decoder.ratios, c.mimi.encoder.ratios);
  EXPECT_EQ(c.mimi.decoder_transformer.width, 16u);
  EXPECT_EQ(c.mimi.decoder_transformer.heads, 2u);
  EXPECT_EQ(c.mimi.decoder_transformer.key_heads, 2u);
  EXPECT_EQ(c.mimi.decoder_transformer.hidden, 40u);
  EXPECT_EQ(c.mimi.decoder_transformer.window, 40u);
  EXPECT_EQ(c.mimi.decoder_transformer.max_period, 10000.0f);
  EXPECT_TRUE(c.mimi.decoder_transformer.layer_scale);
}

TEST(ConfigFile, ReadsEveryArchitecture) {
  EXPECT_EQ(config_of("english_24l").flow_lm.transformer.layers, 24u);
  EXPECT_TRUE(config_of("english_2026-01").text.pad_short);
  EXPECT_FALSE(config_of("english_2026-01").flow_lm.bos_before_voice);
  EXPECT_EQ(config_of("english_drifting").flow_lm.head, HeadType::kDrifting);
  EXPECT_EQ(config_of("english_drifting").mimi.latent, 8u);
  EXPECT_EQ(config_of("flow_matching").flow_lm.head, HeadType::kFlowMatching);
  EXPECT_TRUE(config_of("flow_matching").text.replace.empty());

  const Config small = config_of("english_18m");  // nulls for attn_dim, num_kv_heads and rank
  EXPECT_EQ(small.flow_lm.transformer.attention_width, 64u);
  EXPECT_EQ(small.flow_lm.transformer.key_heads, 1u);
  EXPECT_EQ(small.flow_lm.text_rank, 0u);
  EXPECT_EQ(small.flow_lm.condition, 28u);
  EXPECT_TRUE(small.flow_lm.project_condition);
  EXPECT_EQ(small.flow_lm.tokenizer, TokenizerKind::kSentencePiece);
  EXPECT_EQ(small.eos_threshold, -1.0f);
  EXPECT_EQ(small.text.replace[0], (std::pair<char32_t, std::u32string>(U'–', U",")));
  EXPECT_EQ(small.mimi.encoder.width, 16u);
  EXPECT_EQ(small.mimi.decoder.width, 24u);
  EXPECT_EQ(small.mimi.decoder.kernel, 3u);
  EXPECT_EQ(small.mimi.decoder_transformer.layers, 3u);
  EXPECT_EQ(small.mimi.decoder_transformer.window, 20u);
  EXPECT_EQ(small.mimi.encoder_transformer.window, 40u);

  const Config grouped = config_of("english_7m");
  EXPECT_EQ(grouped.flow_lm.transformer.attention_width, 256u);
  EXPECT_EQ(grouped.flow_lm.transformer.head_size(), 64u);
  EXPECT_EQ(grouped.flow_lm.transformer.key_width(), 128u);
  EXPECT_EQ(grouped.flow_lm.text_rank, 12u);

  const Config least = config_of("english_2m");
  EXPECT_EQ(least.flow_lm.head, HeadType::kPointwise);
  EXPECT_EQ(least.flow_lm.transformer.heads, 3u);
  EXPECT_EQ(least.flow_lm.transformer.key_heads, 1u);
  EXPECT_EQ(least.flow_lm.transformer.hidden, 26u);  // not width * hidden_scale
  EXPECT_EQ(least.mimi.decoder.filters, 3u);
}

TEST(ConfigFile, AbsentKeysGetDefaults) {
  std::string text = changed("english", "  inner_dim: 8\n  outer_dim: 16\n", "  inner_dim: null\n");
  text.replace(text.find("  insert_bos_before_voice: true\n"), 32, "");
  const auto read = parse_config(text, "c");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->config.mimi.inner_width, 16u);
  EXPECT_EQ(read->config.mimi.outer_width, 16u);
  EXPECT_FALSE(read->config.flow_lm.bos_before_voice);
}

TEST(ConfigFile, ReadsTheKeysThatNoSmallCheckpointHas) {
  const auto read = parse_config(changed("english", "flow_lm:\n",
                                         "weights_path_without_voice_cloning: hf://a/b@c\ndefault_temperature: 0.7\n"
                                         "model_recommended_frames_after_eos: 8\nremove_semicolons: Yes\n"
                                         "append_terminal_punctuation: FALSE\ncapitalize_first_letter: off\nflow_lm:\n"
                                         "  weights_path: f.safetensors\n"),
                                 "c");
  ASSERT_TRUE(read) << read.error().message;
  const Config& c = read->config;
  EXPECT_EQ(c.weights_path_without_voice_cloning, "hf://a/b@c");
  EXPECT_EQ(c.temperature, 0.7f);
  EXPECT_EQ(c.frames_after_eos, 8u);
  EXPECT_TRUE(c.text.remove_semicolons);
  EXPECT_FALSE(c.text.terminal_punctuation || c.text.capitalize);
  EXPECT_EQ(c.flow_lm_weights_path, "f.safetensors");

  const auto mimi = parse_config(changed("english", "mimi:\n", "mimi:\n  weights_path: m\n"), "c");
  ASSERT_TRUE(mimi) << mimi.error().message;
  EXPECT_EQ(mimi->config.mimi_weights_path, "m");
  const auto period =
      parse_config(changed("english", "    context: 40\n", "    context: 40\n    max_period: 5e3\n"), "c");
  ASSERT_TRUE(period) << period.error().message;
  EXPECT_EQ(period->config.mimi.encoder_transformer.max_period, 5000.0f);
}

TEST(ConfigFile, ReadsDeletionsOfCharacters) {
  const auto read = parse_config(changed("english", "  '’': \"'\"\n", "  '\"': ''\n  \"\\u201e\": ab\n"), "c");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->config.text.replace, (decltype(Config().text.replace){{U'"', U""}, {U'„', U"ab"}, {U'‘', U"'"}}));
}

TEST(ConfigFile, WarnsOfUnknownKeys) {
  std::string text = changed("english", "  flow:\n", "  flow:\n    shape: 3\n");
  text += "extra: {a: 1}\n";
  const auto read = parse_config(text, "c");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->warnings.size(), 2u);
  EXPECT_EQ(read->warnings[0], "'c': flow_lm.flow.shape on line 13 is not known and has no effect");
  EXPECT_THAT(read->warnings[1], HasSubstr("'c': extra on line"));
}

TEST(ConfigFile, NamesOtherArchitectures) {
  expect_fault(R"({"model_type": "qwen3_tts", "hidden_size": 4})", Code::kUnsupported,
               "configuration of 'qwen3_tts', not");
  expect_fault(R"({"architectures": ["WhisperModel"]})", Code::kUnsupported, "configuration of 'WhisperModel', not");
  expect_fault("a: 1\n", Code::kUnsupported, "an unknown architecture, not of Pocket TTS");
  expect_fault("", Code::kDataLoss, "not a mapping");
  expect_fault("- 1\n", Code::kDataLoss, "not a mapping");
  expect_fault("a: [\n", Code::kDataLoss, "not valid YAML");
  expect_fault("mimi: {}\n", Code::kDataLoss, "lacks flow_lm,");
  expect_fault("flow_lm: 3\n", Code::kDataLoss, "flow_lm on line 1 is '3', not a mapping");
}

struct Fault {
  const char* file;
  const char* from;
  const char* to;
  Code code;
  const char* part;
};

class ConfigFault : public testing::TestWithParam<Fault> {};
TEST_P(ConfigFault, NamesKeyAndLine) {
  const Fault& fault = GetParam();
  expect_fault(changed(fault.file, fault.from, fault.to), fault.code, fault.part);
}

INSTANTIATE_TEST_SUITE_P(
    Types, ConfigFault,
    testing::Values(
        Fault{"english", "    dim: 24\n", "", Code::kDataLoss,
              "lacks flow_lm.flow.dim, which belongs to the mapping on line 13"},
        Fault{"english", "    dim: 24\n", "    dim: null\n", Code::kDataLoss, "lacks flow_lm.flow.dim"},
        Fault{"english", "depth: 2", "depth: two", Code::kDataLoss,
              "flow_lm.flow.depth on line 13 is 'two', not a whole number"},
        Fault{"english", "depth: 2", "depth: 2.5", Code::kDataLoss, "not a whole number"},
        Fault{"english", "depth: 2", "depth: -2", Code::kDataLoss, "not a whole number"},
        Fault{"english", "depth: 2", "depth: [2]", Code::kDataLoss, "is a list, not a whole number"},
        Fault{"english", "depth: 2", "depth: {a: 2}", Code::kDataLoss, "is a mapping, not a whole number"},
        Fault{"english", "depth: 2", "depth: 0", Code::kLimitExceeded, "is '0'; 1 to 256 are read"},
        Fault{"english", "d_model: 32", "d_model: 99999999999999999999999999999999999999999999", Code::kLimitExceeded,
              "is a text of 44 bytes; 1 to 16384 are read"},
        Fault{"english", "frame_rate: 12.5", "frame_rate: fast", Code::kDataLoss,
              "mimi.frame_rate on line 33 is 'fast', not a number"},
        Fault{"english", "frame_rate: 12.5", "frame_rate: .inf", Code::kDataLoss, "not a number"},
        Fault{"english", "frame_rate: 12.5", "frame_rate: nan", Code::kDataLoss, "not a number"},
        Fault{"english", "frame_rate: 12.5", "frame_rate: 1e9", Code::kLimitExceeded, "1 to 1000 are read"},
        Fault{"english", "before_voice: true", "before_voice: maybe", Code::kDataLoss,
              "is 'maybe', neither true nor false"},
        Fault{"english", "weights_path: model", "weights_path: [model]\nx: ", Code::kDataLoss,
              "weights_path on line 3 is a list, not a text"},
        Fault{"english", "model.safetensors", "\"a\\0b\"", Code::kDataLoss, "holds a character U+0000"},
        Fault{"english", "    ratios:\n    - 6\n    - 5\n    - 4\n", "    ratios: 120\n", Code::kDataLoss,
              "is not a list of whole numbers"},
        Fault{"english", "    ratios:\n    - 6\n    - 5\n    - 4\n", "    ratios: []\n", Code::kDataLoss,
              "is not a list of whole numbers"},
        Fault{"english", "    - 6\n", "    - 6\n    - x\n", Code::kDataLoss, "mimi.seanet.ratios on line 41 is 'x'"},
        Fault{"english", "    ratios:\n", "    ratios: [1, 1, 1, 1, 1, 1, 1, 1, 1]\n    more:\n", Code::kLimitExceeded,
              "has 9 numbers; at most 8"},
        Fault{"english", "    ratios:\n    - 6\n", "    no:\n    - 6\n", Code::kDataLoss, "lacks mimi.seanet.ratios"},
        Fault{"english", "  '’': \"'\"\n", "  ab: c\n", Code::kDataLoss,
              "replace_characters on line 6 has a key of 2 characters"},
        Fault{"english", "  '’': \"'\"\n", "  '': c\n", Code::kDataLoss, "has a key of 0 characters"},
        Fault{"english", "  '’': \"'\"\n", "  '’': [a]\n", Code::kDataLoss,
              "has no text of at most 64 characters for '’'"},
        Fault{"english", "  '’': \"'\"\n", "  '’':\n", Code::kDataLoss, "'' deletes it"},
        Fault{"english", "replace_characters:\n", "replace_characters: x\nno:\n", Code::kDataLoss,
              "is not a mapping of characters"}));

INSTANTIATE_TEST_SUITE_P(
    Dimensions, ConfigFault,
    testing::Values(
        Fault{"english", "num_heads: 2", "num_heads: 3", Code::kDataLoss,
              "flow_lm.transformer.num_heads on line 19 is 3, which does not cut 32"},
        Fault{"english", "num_heads: 2", "num_heads: 32", Code::kDataLoss, "heads of an even size"},
        Fault{"english_7m", "num_kv_heads: 2", "num_kv_heads: 3", Code::kDataLoss,
              "num_kv_heads on line 26 is 3, which does not divide the 4 query heads"},
        Fault{"english_7m", "d_model: 24\n    hidden_scale: 1", "d_model: 16384\n    hidden_scale: 64",
              Code::kLimitExceeded, "at most 16384"},
        Fault{"english", "    dim: 32", "    dim: 31", Code::kDataLoss,
              "flow_lm.lookup_table.dim on line 22 is 31, but the transformer is 32 wide"},
        Fault{"english", "dim: 24\n", "dim: 24\n    type: euler\n", Code::kUnsupported,
              "flow_lm.flow.type on line 15 is 'euler'; lsd"},
        Fault{"english", "tokenizer: tokenizers", "tokenizer: bpe", Code::kUnsupported,
              "is 'bpe'; tokenizers, json and sentencepiece"},
        Fault{"english", "dtype: float32", "dtype: bfloat16", Code::kUnsupported,
              "flow_lm.dtype on line 11 is 'bfloat16'; only 'float32'"},
        Fault{"english", "pad_mode: constant", "pad_mode: replicate", Code::kUnsupported,
              "only 'constant' is supported"},
        Fault{"english", "  channels: 1", "  channels: 2", Code::kUnsupported, "mimi.channels on line 32 is not 1"},
        Fault{"english", "n_filters: 4", "n_filters: 4000", Code::kLimitExceeded, "doubles with each of 3 ratios"},
        Fault{"english", "n_filters: 4", "n_filters: 1", Code::kDataLoss,
              "mimi.seanet.compress on line 48 is 2, which leaves nothing of 1"},
        Fault{"english", "    - 6\n    - 5\n    - 4\n", "    - 64\n    - 64\n    - 64\n", Code::kLimitExceeded,
              "make a position 262144 samples long"},
        Fault{"english", "    - 6\n", "    - 7\n", Code::kUnsupported, "not two or more positions of 140"},
        Fault{"english", "    d_model: 16", "    d_model: 20", Code::kUnsupported,
              "mimi.transformer.d_model on line 50 differs from"},
        Fault{"english", "input_dimension: 16", "input_dimension: 15", Code::kUnsupported,
              "input_dimension on line 56 differs"},
        Fault{"english", "    - 16\n", "    - 16\n    - 16\n", Code::kUnsupported,
              "output_dimensions on line 57 differs"},
        Fault{"english", "outer_dim: 16", "outer_dim: 32", Code::kUnsupported,
              "mimi.outer_dim on line 31 is 32, but the decoder is 16 wide"},
        Fault{"english", "output_dimension: 16", "output_dimension: 17", Code::kDataLoss,
              "quantizer.output_dimension on line 61 is 17"},
        Fault{"english", "frame_rate: 12.5", "frame_rate: 13", Code::kDataLoss, "does not cut 24000 samples a second"},
        Fault{"english", "frame_rate: 12.5", "frame_rate: 200", Code::kUnsupported, "two or more positions of 120"},
        Fault{"english_18m",
              "    dimension: 24\n    channels: 1\n    n_filters: 2\n    n_residual_layers: 1\n    ratios:\n    - 6",
              "    dimension: 24\n    channels: 1\n    n_filters: 2\n    n_residual_layers: 1\n    ratios:\n    - 3",
              Code::kUnsupported, "makes 60 samples a position, but the encoder takes 120"},
        Fault{"english_18m", "  decoder_transformer:\n", "  no:\n", Code::kUnsupported,
              "mimi.decoder_transformer on line 36 is 16 wide"}));

// The kind, or else the path's ending, selects the tokenizer's reader (spec, section 2.1).
TEST(ConfigFile, KnowsTheTokenizersForm) {
  const auto kind_of = [](const std::string& kind, const std::string& path) {
    const auto read =
        parse_config(changed("english", "    tokenizer: tokenizers\n    tokenizer_path: ../tokenizer.json",
                             "    tokenizer: " + kind + "\n    tokenizer_path: " + path),
                     "c");
    EXPECT_TRUE(read) << read.error().message;
    return read ? read->config.flow_lm.tokenizer : TokenizerKind::kJson;
  };
  EXPECT_EQ(kind_of("json", "t"), TokenizerKind::kJson);
  EXPECT_EQ(kind_of("tokenizers", "t.model"), TokenizerKind::kJson);
  EXPECT_EQ(kind_of("sentencepiece", "tokenizer.json"), TokenizerKind::kJson);
  EXPECT_EQ(kind_of("sentencepiece", "hf://a/b/tokenizer.json@1234"), TokenizerKind::kJson);
  EXPECT_EQ(kind_of("sentencepiece", "https://a.example/tokenizer.json?x=1.model"), TokenizerKind::kJson);
  EXPECT_EQ(kind_of("sentencepiece", "tokenizer.model"), TokenizerKind::kSentencePiece);
  EXPECT_EQ(kind_of("sentencepiece", "hf://a/b.json/tokenizer.model@x.json"), TokenizerKind::kSentencePiece);
  EXPECT_EQ(kind_of("sentencepiece", "https://a.example/t.model?x=.json"), TokenizerKind::kSentencePiece);
  EXPECT_EQ(kind_of("sentencepiece", "a.json/t.model"), TokenizerKind::kSentencePiece);
}

// Dimensions that are each in their range, but that no codec can be built from.
TEST(ConfigFile, RefusesDimensionsOfNoCodec) {
  expect_fault(changed("english", "    kernel_size: 7", "    kernel_size: 18"), Code::kUnsupported,
               "'c.yaml': mimi: the kernel of a SEANet is 18; it must lie between 1 and 17");
  expect_fault(changed("english", "    context: 40", "    context: 16385"), Code::kLimitExceeded,
               "1 to 16384 are read");
  expect_fault(changed("english", "max_period: 10000", "max_period: 1"), Code::kLimitExceeded, "is 1; 2 to 1000000000");
  expect_fault(changed("english", "dim_feedforward: 40", "dim_feedforward: 16385"), Code::kLimitExceeded,
               "1 to 16384 are read");
}

TEST(ConfigFile, HostileFilesAreAnsweredAtOnceAndBriefly) {
  std::string directives;
  for (int i = 0; directives.size() < 60'000; ++i) directives += fmt::format("%TAG !{}! b\n", i);
  const std::clock_t start = std::clock();
  EXPECT_FALSE(parse_config(directives + "---\na: 1\n", "c"));
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 5);
  expect_fault(directives + directives, Code::kLimitExceeded, "at most 65536 are read");

  const std::string endless(20'000, 'x'), key(1000, 'k');
  for (const std::string& text :
       {changed("english", "dtype: float32", "dtype: " + endless.substr(0, 4000)), key + ": 1\n" + key + ": 2\n",
        changed("english", "tokenizer: tokenizers", "tokenizer: " + endless.substr(0, 4000)),
        changed("english", "dim: 24\n", "dim: 24\n    type: " + endless.substr(0, 4000) + "\n"),
        "model_type: " + endless + "\n"}) {
    const auto read = parse_config(text, "c");
    ASSERT_FALSE(read);
    EXPECT_LT(read.error().message.size(), 250u) << read.error().message;
  }
  std::string many = file_of("english") + key + ": 1\n";
  for (int i = 0; i < 50; ++i) many += fmt::format("key{}: 1\n", i);
  const auto read = parse_config(many, "c");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->warnings.size(), 21u);
  EXPECT_LT(read->warnings[0].size(), 200u);
  EXPECT_THAT(read->warnings[20], HasSubstr("more keys that are not known"));
}

TEST(ConfigFile, LongWordsAreRefused) {
  expect_fault(changed("english", "model.safetensors", std::string(5000, 'x')), Code::kLimitExceeded,
               "weights_path on line 3 is a text of 5000 bytes; at most 4096 are read");
  expect_fault(changed("english", "''''", "'" + std::string(65, 'x') + "'"), Code::kDataLoss, "at most 64 characters");
}

TEST(ConfigFile, EveryPrefixIsAnAnswer) {
  const std::string text = file_of("english_2m");
  for (size_t size = 0; size + 10 < text.size(); ++size) {
    const auto read = parse_config(std::string_view(text).substr(0, size), "c");
    EXPECT_TRUE(read || !read.error().message.empty());
  }
}

}  // namespace
}  // namespace syrinx::pocket
