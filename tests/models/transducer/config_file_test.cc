#include "models/transducer/config_file.h"

#include <gtest/gtest.h>

namespace syrinx::transducer {
namespace {

// The maker's tree of a small TDT model.
std::string config_text() {
  return R"(target: nemo.collections.asr.models.rnnt_bpe_models.EncDecRNNTBPEModel
model_defaults: {enc_hidden: 32, pred_hidden: 24, tdt_durations: [0, 1, 2, 4]}
preprocessor:
  _target_: nemo.collections.asr.modules.AudioToMelSpectrogramPreprocessor
  sample_rate: 16000
  normalize: per_feature
  window_size: 0.025
  window_stride: 0.01
  window: hann
  features: 80
  n_fft: 512
  dither: 1e-05
encoder:
  _target_: nemo.collections.asr.modules.ConformerEncoder
  feat_in: 80
  n_layers: 3
  d_model: 32
  n_heads: 4
  subsampling: dw_striding
  subsampling_factor: 8
  subsampling_conv_channels: 16
  att_context_size: [-1, -1]
  conv_kernel_size: 9
decoder:
  prednet:
    pred_hidden: ${model.model_defaults.pred_hidden}
    pred_rnn_layers: 2
joint:
  num_classes: 3
  num_extra_outputs: 4
  vocabulary: [no, "\u2581a", '1']
  jointnet: {joint_hidden: 20, activation: relu}
tokenizer: {type: bpe, model_path: "nemo:abc_tokenizer.model"}
)";
}

std::string replaced(const std::string& from, const std::string& to) {
  std::string text = config_text();
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(TransducerConfig, ReadsTheMakersTree) {
  const auto config = parse_config(config_text(), "m.yaml");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->target, "EncDecRNNTBPEModel");
  EXPECT_EQ(config->features.window, 400u);
  EXPECT_EQ(config->features.hop, 160u);
  EXPECT_EQ(config->features.preemphasis, 0.97f);
  EXPECT_EQ(config->features.log_guard, 0x1p-24f);
  EXPECT_TRUE(config->features.per_feature);
  // Defaults of keys that the file lacks.
  EXPECT_TRUE(config->encoder.use_bias);
  EXPECT_TRUE(config->encoder.xscaling);
  EXPECT_FALSE(config->encoder.layer_norm);
  EXPECT_EQ(config->encoder.hidden, 128u);
  EXPECT_EQ(config->encoder.conv_left, 4u);
  EXPECT_EQ(config->encoder.contexts, std::vector<AttentionContext>{AttentionContext{}});
  EXPECT_EQ(config->decoder.kind, HeadKind::kTdt);
  EXPECT_EQ(config->decoder.width, 24u);
  EXPECT_EQ(config->decoder.layers, 2u);
  EXPECT_EQ(config->decoder.joint, 20u);
  EXPECT_EQ(config->decoder.durations, (std::vector<size_t>{0, 1, 2, 4}));
  EXPECT_EQ(config->decoder.max_symbols, 10u);
  EXPECT_EQ(config->labels, (std::vector<std::string>{"no", "\u2581a", "1"}));
  EXPECT_EQ(config->tokenizer, "abc_tokenizer.model");
  EXPECT_DOUBLE_EQ(config->frame_s(), 0.08);
}

TEST(TransducerConfig, ReadsStreamingModels) {
  std::string text = replaced("att_context_size: [-1, -1]",
                              "att_context_size: [[70, 13], [70, 6], [70, 1], [70, 0]]\n  att_context_style: "
                              "chunked_limited\n  causal_downsampling: true\n  conv_context_size: causal\n"
                              "  conv_norm_type: layer_norm");
  const auto config = parse_config(text, "m.yaml");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_TRUE(config->encoder.cache_aware());
  EXPECT_TRUE(config->encoder.layer_norm);
  EXPECT_EQ(config->encoder.conv_left, 8u);
  ASSERT_EQ(config->encoder.contexts.size(), 4u);
  EXPECT_EQ(config->encoder.contexts[1], (AttentionContext{70, 6}));
  // Frames 1 + 8 m make m + 1; mels of 80 and 128 make 11 and 17.
  EXPECT_EQ(config->encoder.frames(1), 1u);
  EXPECT_EQ(config->encoder.frames(1 + 8 * 5), 6u);
  EXPECT_EQ(config->encoder.subsampled_mels(), 11u);
}

// A converter's tree: no class, and a kind of its own.
TEST(TransducerConfig, AKindBesideTheMakersSectionsIsNoOtherLayout) {
  const auto config = parse_config(
      replaced("target: nemo.collections.asr.models.rnnt_bpe_models.EncDecRNNTBPEModel", "model_type: parakeet"), "c");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->target, "EncDecRNNTBPEModel");
  EXPECT_EQ(config->decoder.kind, HeadKind::kTdt);
}

// A stream's gates count as its keys do: with no past at all they are most of what it holds.
TEST(TransducerConfig, StreamsAreBounded) {
  const auto sized = [](const std::string& layers, const std::string& width) {
    std::string text =
        replaced("att_context_size: [-1, -1]",
                 "att_context_size: [0, 0]\n  att_context_style: chunked_limited\n"
                 "  causal_downsampling: true\n  conv_context_size: causal\n  conv_norm_type: layer_norm");
    text.replace(text.find("n_layers: 3"), 11, "n_layers: " + layers);
    text.replace(text.find("d_model: 32"), 11, "d_model: " + width);
    return parse_config(text, "m.yaml");
  };
  ASSERT_TRUE(sized("24", "1024").has_value()) << sized("24", "1024").error().message;
  const auto none = sized("128", "8192");
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, Code::kLimitExceeded);
  EXPECT_NE(none.error().message.find("hold 76546048 values"), std::string::npos) << none.error().message;
}

// An absent key has the default of the maker's class; null means none.
TEST(TransducerConfig, TellsNullFromAbsent) {
  const auto features = [](const std::string& from, const std::string& to) {
    const auto config = parse_config(replaced(from, to), "m.yaml");
    EXPECT_TRUE(config.has_value()) << config.error().message;
    return config ? config->features : FeatureConfig();
  };
  EXPECT_TRUE(features("  normalize: per_feature\n", "").per_feature);
  EXPECT_FALSE(features("normalize: per_feature", "normalize: null").per_feature);
  EXPECT_FALSE(features("normalize: per_feature", "normalize: NA").per_feature);
  EXPECT_EQ(features("dither: 1e-05", "preemph: null").preemphasis, 0.0f);
  EXPECT_EQ(features("dither: 1e-05", "preemph: 0.5").preemphasis, 0.5f);
}

TEST(TransducerConfig, UnsupportedSettingsAreNamed) {
  struct Case {
    std::string from, to;
    Code code;
    std::string named;
  };
  const Case cases[] = {
      {"EncDecRNNTBPEModel", "EncDecMultiTaskModel", Code::kUnsupported, "EncDecMultiTaskModel"},
      {"modules.ConformerEncoder", "modules.SqueezeformerEncoder", Code::kUnsupported, "SqueezeformerEncoder"},
      {"sample_rate: 16000", "sample_rate: 8000", Code::kUnsupported, "preprocessor.sample_rate"},
      {"per_feature", "all_features", Code::kUnsupported, "all_features"},
      {"dw_striding", "vggnet", Code::kUnsupported, "vggnet"},
      {"subsampling_factor: 8", "subsampling_factor: 6", Code::kDataLoss, "subsampling_factor"},
      {"n_heads: 4", "n_heads: 5", Code::kDataLoss, "n_heads"},
      {"n_layers: 3", "n_layers: 3000", Code::kLimitExceeded, "n_layers"},
      {"n_layers: 3\n", "\n", Code::kDataLoss, "n_layers"},
      {"conv_kernel_size: 9", "conv_kernel_size: 8", Code::kDataLoss, "conv_kernel_size"},
      {"conv_kernel_size: 9", "conv_context_size: [3, 3]", Code::kDataLoss, "conv_context_size"},
      {"[-1, -1]", "[-1, x]", Code::kDataLoss, "att_context_size"},
      {"[-1, -1]", "[70, 12]\n  att_context_style: chunked_limited", Code::kDataLoss, "att_context_size"},
      {"feat_in: 80", "feat_in: 128", Code::kDataLoss, "128"},
      {"num_classes: 3", "num_classes: 4", Code::kDataLoss, "num_classes"},
      {"[0, 1, 2, 4]", "[0, 1, 2]", Code::kDataLoss, "tdt_durations"},
      {"[no, ", "[" + std::string(257, 'n') + ", ", Code::kLimitExceeded, "a label of 257 bytes"},
      {"activation: relu", "activation: tanh", Code::kUnsupported, "tanh"},
      {"type: bpe", "type: wpe", Code::kUnsupported, "WordPiece"},
      {"window_size: 0.025", "window_size: +-0.025", Code::kDataLoss, "not a number"},
      {"decoder:", "decoder:\n  normalization_mode: layer", Code::kUnsupported, "normalization_mode"},
      {"encoder:\n", "encoder:\n  reduction: pooling\n", Code::kUnsupported, "reduction"},
      {"window_stride: 0.01", "window_stride: 0.05", Code::kUnsupported, "window_stride"},
      {"window_size: 0.025", "window_size: 0.0199375", Code::kUnsupported, "half of the window's 319"},
      {"window_size: 0.025", "n_window_size: 400", Code::kUnsupported, "n_window_size"},
      {"dither: 1e-05", "log_zero_guard_value: 0", Code::kLimitExceeded, "log_zero_guard_value"},
      {"encoder:\n", "encoder:\n  global_tokens: 1\n", Code::kUnsupported, "global_tokens"},
      {"[-1, -1]", "[10000, 9999]\n  att_context_style: chunked_limited", Code::kDataLoss, "-1 to 1024"},
      {"subsampling_conv_channels: 16\n  att_context_size: [-1, -1]",
       "subsampling_conv_channels: 4096\n  att_context_size: [512, 511]\n  att_context_style: chunked_limited",
       Code::kLimitExceeded, "att_context_size"},
      {"d_model: 32\n  n_heads: 4\n  subsampling: dw_striding\n  subsampling_factor: 8\n"
       "  subsampling_conv_channels: 16\n  att_context_size: [-1, -1]",
       "d_model: 8192\n  n_heads: 4\n  subsampling: dw_striding\n  subsampling_factor: 8\n"
       "  subsampling_conv_channels: 16\n  att_context_size: [1024, 1023]\n  att_context_style: chunked_limited",
       Code::kLimitExceeded, "att_context_size"},
      {"target: nemo.collections.asr.models.rnnt_bpe_models.EncDecRNNTBPEModel", "architectures: [ParakeetForCTC]",
       Code::kUnsupported, "Transformers"},
      {"[-1, -1]", "[128, 64]\n  self_attention_model: rel_pos_local_attn", Code::kUnsupported, "rel_pos_local_attn"},
      {"joint:", "%TAG ! x\njoint:", Code::kUnsupported, "directives"}};
  for (const Case& c : cases) {
    const auto config = parse_config(replaced(c.from, c.to), "m.yaml");
    ASSERT_FALSE(config.has_value()) << c.to;
    EXPECT_EQ(config.error().code, c.code) << config.error().message;
    EXPECT_NE(config.error().message.find(c.named), std::string::npos) << config.error().message;
  }
}

// The frames that each block waits for count twice where a stream holds them, and not at all in other models.
TEST(TransducerConfig, FramesHeldByLookaheadAreLimited) {
  const auto read = [](const std::string& more, const std::string& context) {
    return parse_config(replaced("d_model: 32\n  n_heads: 4\n  subsampling: dw_striding\n  subsampling_factor: 8\n"
                                 "  subsampling_conv_channels: 16\n  att_context_size: [-1, -1]",
                                 "d_model: 8192\n  n_heads: 4\n  subsampling: dw_striding\n  subsampling_factor: 8\n"
                                 "  subsampling_conv_channels: 16\n  att_context_size: " +
                                     context + more),
                        "m.yaml");
  };
  const std::string causal = "\n  causal_downsampling: true\n  conv_context_size: causal";
  const auto refused = read(causal, "[500, 500]");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kLimitExceeded) << refused.error().message;
  EXPECT_NE(refused.error().message.find("att_context_size"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(read("", "[500, 500]").has_value());
  EXPECT_TRUE(read(causal, "[500, 0]").has_value());
  const auto streamed = read(causal, "[70, 2]");
  ASSERT_TRUE(streamed.has_value()) << streamed.error().message;
  EXPECT_TRUE(streamed->encoder.cache_aware());
}

TEST(TransducerConfig, ReadsMenusOfWindows) {
  const std::string rc = "[6, 6]\n  att_context_style: chunked_limited_with_rc\n  conv_context_style: dcc\n";
  const auto config =
      parse_config(replaced("[-1, -1]", rc + "  att_chunk_context_size: [[70], [1, 2, 7, 13], [0, 1, 3]]"), "m.yaml");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->encoder.contexts, std::vector<AttentionContext>{AttentionContext{}});
  ASSERT_TRUE(config->encoder.menu.has_value());
  EXPECT_EQ(config->encoder.menu->usual(), (AttentionContext{70, 3, 7}));
  for (const char* const menus : {"[[70], [7]]", "[[70], [0], [1]]", "[[70], [], [1]]", "[[70], [7], [5000]]", "7"})
    EXPECT_EQ(parse_config(replaced("[-1, -1]", rc + "  att_chunk_context_size: " + menus), "m").error().code,
              Code::kDataLoss)
        << menus;
  EXPECT_EQ(parse_config(replaced("[-1, -1]", "[6, 6]\n  conv_context_style: other"), "m").error().code,
            Code::kUnsupported);
}

TEST(TransducerConfig, ReadsLanguagesOfAPrompt) {
  const auto with = [](const std::string& defaults) {
    std::string text = replaced("EncDecRNNTBPEModel\n", "EncDecRNNTBPEModelWithPrompt\n");
    const std::string from = "model_defaults: {";
    return parse_config(text.replace(text.find(from), from.size(), from + defaults), "m.yaml");
  };
  const auto config =
      with("initialize_prompt_feature: true, num_prompts: 8, prompt_dictionary: {en-US: 0, de-DE: 3, auto: 7}, ");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  const PromptConfig& prompt = config->encoder.prompt;
  EXPECT_EQ(prompt.count, 8u);
  EXPECT_EQ(prompt.hidden, 64u);
  EXPECT_EQ(prompt.fallback, 7u);
  EXPECT_EQ(prompt.find("DE")->index, 3u);
  EXPECT_EQ(prompt.find("en-us")->index, 0u);
  EXPECT_EQ(prompt.find("en-GB"), nullptr);
  EXPECT_EQ(prompt.find("d"), nullptr);
  EXPECT_EQ(with("initialize_prompt_feature: true, prompt_dictionary: {fr: 5}, ")->encoder.prompt.fallback, 5u);
  EXPECT_EQ(with("")->encoder.prompt.count, 0u);  // the maker's class leaves it out too
  for (const char* const wrong : {"prompt_dictionary: {}, ", "prompt_dictionary: {en: 128}, ", "prompt_dictionary: 1, ",
                                  "prompt_dictionary: {en: x}, ", "num_prompts: 8, "})
    EXPECT_EQ(with(std::string("initialize_prompt_feature: true, ") + wrong).error().code, Code::kDataLoss) << wrong;
}

}  // namespace
}  // namespace syrinx::transducer
