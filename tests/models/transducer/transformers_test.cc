// Checkpoints in transformers' names and layout beside what transformers computes from them.
#include <gtest/gtest.h>

#include <filesystem>

#include "../safetensors_arrays.h"
#include "../seen_stages.h"
#include "fixtures.h"
#include "models/transducer/config_file.h"
#include "models/transducer/encoder.h"
#include "models/transducer/head_decoder.h"
#include "models/transducer/model.h"
#include "models/transducer/stream_encoder.h"
#include "models/transducer/transformers_names.h"
#include "temp_folder.h"

namespace syrinx::transducer {
namespace {

namespace fs = std::filesystem;

constexpr double kBound = 1e-4;                             // of a stage's largest value
constexpr size_t kSamples = 20800, kStreamSamples = 64000;  // as in tools/reference/transducer_transformers.py
const char* const kModels[] = {"ctc", "rnnt", "tdt", "nemotron", "nemotron3_5"};

std::string folder_of(const std::string& name) { return data("transformers/" + name); }
SafetensorsArrays reference_of(const std::string& name) {
  return SafetensorsArrays(folder_of(name) + "/reference.safetensors");
}

std::shared_ptr<const Model> load(const std::string& path) {
  auto model = Model::load(path);
  if (!model) {
    ADD_FAILURE() << model.error().message;
    std::abort();
  }
  return *model;
}

struct Heard {
  explicit Heard(std::shared_ptr<const Model> of) : model(std::move(of)), encoder(model->encoder(), runner) {}

  std::vector<float> mels(size_t samples) {
    const size_t columns = model->config().features.mels, rows = model->features()->frames(samples);
    std::vector<float> out(rows * columns);
    model->features()->compute(noise(samples), {out.data(), {rows, columns}}, team);
    return out;
  }
  View<const float, 2> encode(const std::vector<float>& mels) {
    const size_t columns = model->config().features.mels;
    return encoder.encode({mels.data(), {mels.size() / columns, columns}});
  }
  std::vector<int32_t> labels(View<const float, 2> frames) {
    HeadDecoder decoder(model->decoder(), runner, {}, 1, 64);
    HeadState state(*model->decoder());
    std::vector<Emission> found;
    const HeadDecoder::Job job{&state, frames, &found};
    decoder.decode({&job, 1});
    std::vector<int32_t> out;
    for (const Emission& emission : found) out.push_back(emission.label);
    return out;
  }

  ThreadTeam team{1};
  nn::Runner runner{team};
  std::shared_ptr<const Model> model;
  Encoder encoder;
};

TEST(TransducerTransformers, FeaturesStagesAndLabels) {
  for (const char* name : kModels) {
    SCOPED_TRACE(name);
    Heard heard(load(folder_of(name)));
    const SafetensorsArrays reference = reference_of(name);
    EXPECT_LE(largest_difference(heard.mels(4000), reference.get("mel.4000")), kBound);
    std::map<std::string, std::vector<float>> seen;
    heard.encoder.set_probe([&](const std::string& stage, View<const float, 2> x) { seen[stage] = flat(x); });
    const View<const float, 2> frames = heard.encode(heard.mels(kSamples));
    for (const char* stage : {"pre", "layer0"})
      EXPECT_LE(largest_difference(seen.at(stage), reference.get(fmt::format("stage.{}", stage))), kBound) << stage;
    const std::vector<int32_t> labels = reference.get<int32_t>("tokens");
    EXPECT_GT(labels.size(), 5u);
    EXPECT_EQ(heard.labels(frames), labels);
  }
}

// Chunk by chunk with caches, for each look-ahead that the checkpoint names: transformers' own steps.
void compare_streams(const std::string& name) {
  SCOPED_TRACE(name);
  Heard heard(load(folder_of(name)));
  const SafetensorsArrays reference = reference_of(name);
  const EncoderConfig& config = heard.encoder.config();
  const std::vector<AttentionContext> contexts = {{14, 1}, {14, 0}, {14, 6}, {14, 13}};
  ASSERT_EQ(config.contexts, contexts);
  const std::vector<float> mels = heard.mels(kStreamSamples);
  for (const AttentionContext context : contexts) {
    SCOPED_TRACE(context.right);
    StreamEncoder encoder(heard.model->encoder(), heard.runner, context, 1);
    EncoderState state(config, context, StreamMode::kExact);
    const std::vector<float> theirs = reference.get(fmt::format("stream.{}", context.right));
    std::vector<float> ours;
    for (size_t at = 0; ours.size() < theirs.size();) {
      const size_t more = state.started() ? chunk_mels(config, context) : first_chunk_mels(config, context);
      const StreamEncoder::Input input{&state, {mels.data() + at * config.mels, {more, config.mels}}, false};
      StreamEncoder::Output output;
      const std::vector<float> frames = flat(encoder.step({&input, 1}, {&output, 1}));
      ours.insert(ours.end(), frames.begin(), frames.end());
      at += more;
    }
    EXPECT_LE(largest_difference(ours, theirs), kBound);
  }
}

TEST(TransducerTransformers, StreamsOfEachLookAhead) {
  compare_streams("nemotron");
  compare_streams("nemotron3_5");
}

// A language that the model is told changes its frames and its labels as in transformers.
TEST(TransducerTransformers, HearsInTheLanguageItIsTold) {
  Heard heard(load(folder_of("nemotron3_5")));
  const SafetensorsArrays reference = reference_of("nemotron3_5");
  const PromptConfig& prompt = heard.encoder.config().prompt;
  ASSERT_EQ(prompt.languages.size(), 4u);
  EXPECT_EQ(prompt.hidden, 12u);
  EXPECT_EQ(prompt.fallback, prompt.find("auto")->index);
  EXPECT_EQ(prompt.find("de")->index, 1u);
  const std::vector<float> mels = heard.mels(kSamples);
  for (const PromptConfig::Language& language : prompt.languages) {
    SCOPED_TRACE(language.name);
    heard.encoder.set_prompt(language.index);
    const View<const float, 2> frames = heard.encode(mels);
    EXPECT_LE(largest_difference(flat(frames), reference.get("prompted." + language.name)), kBound);
    EXPECT_EQ(heard.labels(frames), reference.get<int32_t>("tokens." + language.name));
  }
  EXPECT_NE(reference.get<int32_t>("tokens.auto"), reference.get<int32_t>("tokens.de-DE"));
}

TEST(TransducerTransformers, SpellsTheirPieces) {
  const Checkpoint checkpoint = opened("transformers/rnnt");
  const Vocabulary& vocabulary = checkpoint.vocabulary();
  ASSERT_EQ(vocabulary.size(), 12u);  // the blank is none of them
  EXPECT_TRUE(vocabulary.is_bpe());
  EXPECT_TRUE(vocabulary.is_special(0));
  EXPECT_TRUE(vocabulary.is_special(1));
  EXPECT_EQ(vocabulary.find("\u2581abcd"), 4);
  EXPECT_TRUE(vocabulary.begins_word(4));
  EXPECT_EQ(vocabulary.text(std::vector<int32_t>{4, 3, 1, 2, 11}), "abcdcd ab.");
  // Merges rank as in the file: U+2581 a with b is the first of them.
  EXPECT_GT(vocabulary.token(2).score, vocabulary.token(4).score);
  EXPECT_GT(vocabulary.token(3).score, vocabulary.token(5).score);
}

TEST(TransducerTransformers, NamesAreTheMakers) {
  EXPECT_EQ(maker_name("encoder.subsampling.layers.5.bias"), "encoder.pre_encode.conv.5.bias");
  EXPECT_EQ(maker_name("encoder.subsampling.layers.1.pointwise_conv.weight"), "encoder.pre_encode.conv.6.weight");
  EXPECT_EQ(maker_name("encoder.layers.17.conv.norm.running_var"), "encoder.layers.17.conv.batch_norm.running_var");
  EXPECT_EQ(maker_name("encoder.layers.2.self_attn.bias_u"), "encoder.layers.2.self_attn.pos_bias_u");
  EXPECT_EQ(maker_name("encoder.layers.2.norm_conv.weight"), "encoder.layers.2.norm_conv.weight");
  for (const char* const other : {"encoder.layers.", "encoder.layers.x.conv.norm.", "encoder.layers.1", "", "joint"})
    EXPECT_EQ(maker_name(other), other);
  EXPECT_EQ(maker_name("encoder.subsampling.layers.99999999999999999999.pointwise_conv.weight"),
            "encoder.pre_encode.conv.99999999999999999999.pointwise_conv.weight");
}

TEST(TransducerTransformers, MissingFilesAreNamed) {
  const TempFolder folder;
  fs::copy(folder_of("nemotron"), folder.path(), fs::copy_options::recursive);
  fs::remove(folder.file("model-00002-of-00003.safetensors"));
  const auto none = Checkpoint::open(folder.path());
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, Code::kNotFound);
  EXPECT_NE(none.error().message.find("model-00002-of-00003.safetensors' is missing"), std::string::npos)
      << none.error().message;
}

std::string with(std::string config, const std::string& from, const std::string& to) {
  EXPECT_NE(config.find(from), std::string::npos) << from;
  return config.replace(config.find(from), from.size(), to);
}

// kInternal: none.
Code code(const std::string& config, const std::string& processor) {
  const auto parsed = parse_config(config, "c", {.text = processor, .name = "p"});
  return parsed ? Code::kInternal : parsed.error().code;
}

TEST(TransducerTransformers, RefusesPromptsThatDoNotFit) {
  const std::string text = read_text(folder_of("nemotron3_5") + "/config.json");
  const std::string beside = read_text(folder_of("nemotron3_5") + "/processor_config.json");
  EXPECT_EQ(code(text, beside), Code::kInternal);
  EXPECT_EQ(code(with(text, "\"default_prompt_id\": 3", "\"default_prompt_id\": 5"), beside), Code::kDataLoss);
  EXPECT_EQ(code(with(text, "\"num_prompts\": 5", "\"num_prompts\": 3"), beside), Code::kDataLoss);
  EXPECT_EQ(code(with(text, "\"num_prompts\": 5", "\"num_prompts\": 5000"), beside), Code::kLimitExceeded);
  EXPECT_EQ(code(with(text, "_size\": 12", "_size\": 99999"), beside), Code::kLimitExceeded);
  EXPECT_EQ(code(text, with(beside, "\"de-DE\": 1", "\"de-DE\": 5")), Code::kDataLoss);
  EXPECT_EQ(code(text, with(beside, "\"de-DE\": 1", "\"de-DE\": -1")), Code::kDataLoss);
  const std::string nameless = with(beside, "prompt_dictionary", "other_dictionary");
  const auto none = parse_config(text, "c", {.text = nameless, .name = "p"});
  ASSERT_FALSE(none.has_value());
  EXPECT_NE(none.error().message.find("prompt_dictionary"), std::string::npos) << none.error().message;
  // The weights must be as wide as the configuration says.
  const TempFolder folder;
  fs::copy(folder_of("nemotron3_5"), folder.path(), fs::copy_options::recursive);
  write_text(folder.file("config.json"), with(text, "_size\": 12", "_size\": 11"));
  const auto narrow = Model::load(folder.path());
  ASSERT_FALSE(narrow.has_value());
  EXPECT_NE(narrow.error().message.find("prompt_kernel.0"), std::string::npos) << narrow.error().message;
}

TEST(TransducerTransformers, RefusesUnsupportedSettings) {
  const std::string text = read_text(folder_of("nemotron") + "/config.json");
  const std::string beside = read_text(folder_of("nemotron") + "/processor_config.json");
  EXPECT_EQ(code(text, beside), Code::kInternal);
  EXPECT_EQ(code(text, ""), Code::kDataLoss);  // 80 features by default, but the encoder takes 16
  const auto bare = parse_config(text, "c");
  ASSERT_FALSE(bare.has_value());
  EXPECT_NE(bare.error().message.find("processor_config.json"), std::string::npos) << bare.error().message;
  EXPECT_EQ(code(with(text, "\"nemotron_asr_streaming\"", "\"wav2vec2\""), beside), Code::kUnsupported);
  EXPECT_EQ(code(with(text, "\"blank_token_id\": 12", "\"blank_token_id\": 3"), beside), Code::kUnsupported);
  EXPECT_EQ(code(with(text, "\"convolution_bias\": true", "\"convolution_bias\": false"), beside), Code::kUnsupported);
  EXPECT_EQ(code(with(text, "\"hidden_act\": \"relu\"", "\"hidden_act\": \"tanh\""), beside), Code::kUnsupported);
  EXPECT_EQ(code(with(text, "\"sliding_window\": 15", "\"sliding_window\": 99999"), beside), Code::kLimitExceeded);
  EXPECT_EQ(code(with(text, "\"sliding_window\": 15", "\"sliding_window\": null"), beside), Code::kUnsupported);
  EXPECT_EQ(code(with(text, "\"subsampling_factor\": 8", "\"subsampling_factor\": 6"), beside), Code::kDataLoss);
  EXPECT_EQ(code(text, with(beside, "\"float32\"", "\"bfloat16\"")), Code::kUnsupported);
  EXPECT_EQ(code(text, with(beside, "\"hop_length\": 160", "\"hop_length\": 300")), Code::kUnsupported);
  EXPECT_EQ(code(text, with(beside, "\"feature_size\": 16", "\"feature_size\": 17")), Code::kDataLoss);
}

}  // namespace
}  // namespace syrinx::transducer
