// Whisper checkpoints that are quantised, damaged or of another kind; what their JSON files may say.
#include "models/whisper/checkpoint.h"

#include <filesystem>
#include <fstream>

#include "../../base/temp_folder.h"
#include "../../tensor/ct2_bytes.h"
#include "fixtures.h"
#include "tensor/ct2_file.h"
#include "tensor/safetensors.h"

namespace syrinx::whisper {
namespace {

// The small checkpoint's variables, to be changed and written again.
struct Variables {
  Variables() {
    auto opened = MappedFile::open(data("ct2/model.bin"));
    EXPECT_TRUE(opened.has_value());
    file = std::move(*opened);
    auto parsed = Ct2File::parse(file.bytes(), "model.bin");
    EXPECT_TRUE(parsed.has_value());
    all = parsed->variables();
  }
  TensorRef& at(const std::string& name) {
    for (TensorRef& variable : all)
      if (variable.name == name) return variable;
    ADD_FAILURE() << name;
    return all.front();
  }
  Result<std::shared_ptr<const Model>> load() const {
    std::ofstream(folder.file("model.bin"), std::ios::binary) << test::ct2_bytes(all);
    return Model::load(folder.path());
  }
  std::string refusal() const {
    const auto model = load();
    EXPECT_FALSE(model.has_value());
    return model ? "" : model.error().message;
  }
  TempFolder folder;
  MappedFile file;
  std::vector<TensorRef> all;
};

std::vector<float> logits_of(const std::shared_ptr<const Model>& model) {
  const Encoded window(model);
  ThreadTeam team(1);
  Decoder decoder(window.model, team, 1);
  auto state = DecoderState::make(*window.model, 1);
  const int32_t tokens[] = {7, 30, 2, 90};
  const auto logits = decoder.prefill(0, tokens, window.audio, *state);
  return {logits.begin(), logits.end()};
}

// The tensors of transformers' form, and a folder for several files of them with an index.
struct Shards {
  Shards() {
    auto opened = MappedFile::open(data("transformers/model.safetensors"));
    EXPECT_TRUE(opened.has_value());
    file = std::move(*opened);
    const auto parsed = Safetensors::parse(file.bytes(), "model.safetensors");
    EXPECT_TRUE(parsed.has_value());
    tensors = parsed->tensors();
    std::filesystem::copy_file(data("transformers/config.json"), folder.file("config.json"));
  }
  // `map`: where each tensor is, as the members of an object.
  void write_index(const std::string& map) const {
    write_text(folder.file("model.safetensors.index.json"), "{\"weight_map\":{" + map + "}}");
  }

  MappedFile file;
  std::vector<TensorRef> tensors;
  TempFolder folder;
};

// transformers' file cut in two, with an index: the same model.
TEST(WhisperCheckpoint, ReadsSeveralFilesWithAnIndex) {
  const Shards shards;
  const TempFolder& folder = shards.folder;
  const std::string names[] = {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"};
  std::vector<TensorRef> parts[2];
  std::string map;
  for (const TensorRef& tensor : shards.tensors) {
    const size_t part = parts[0].size() > parts[1].size() ? 1 : 0;
    parts[part].push_back(tensor);
    map += fmt::format("{}\"{}\":\"{}\"", map.empty() ? "" : ",", tensor.name, names[part]);
  }
  for (size_t i = 0; i < 2; ++i) write_text(folder.file(names[i]), write_safetensors(parts[i]));
  shards.write_index(map);
  const auto whole = Model::load(data("transformers")), cut = Model::load(folder.path());
  ASSERT_TRUE(whole.has_value()) << whole.error().message;
  ASSERT_TRUE(cut.has_value()) << cut.error().message;
  EXPECT_EQ(logits_of(*cut), logits_of(*whole));
  std::filesystem::remove(folder.file(names[1]));
  EXPECT_EQ(Model::load(folder.path()).error().code, Code::kNotFound);
}

// A missing tensor is missing in all of the files: none of them is named alone.
TEST(WhisperCheckpoint, FaultsOfSeveralFilesAreTheIndexs) {
  const Shards shards;
  const TempFolder& folder = shards.folder;
  std::vector<TensorRef> tensors = shards.tensors;
  std::string map;
  for (TensorRef& tensor : tensors) {
    if (tensor.name.ends_with("decoder.layer_norm.bias")) tensor.name = "elsewhere";
    map += fmt::format("{}\"{}\":\"part.safetensors\"", map.empty() ? "" : ",", tensor.name);
  }
  write_text(folder.file("part.safetensors"), write_safetensors(tensors));
  shards.write_index(map);
  const auto model = Model::load(folder.path());
  ASSERT_FALSE(model.has_value());
  EXPECT_NE(model.error().message.find("model.safetensors.index.json' is not a complete Whisper model"),
            std::string::npos)
      << model.error().message;
  const TempFolder hollow;
  const auto none = Model::load(hollow.path());
  ASSERT_FALSE(none.has_value());
  EXPECT_NE(none.error().message.find("model.safetensors.index.json"), std::string::npos) << none.error().message;
}

// Quantised to 8 bits as CTranslate2 does it, a scale a row and value = integer / scale: what is read again is near.
TEST(WhisperCheckpoint, ReadsQuantisedFiles) {
  Variables variables;
  const auto exact = variables.load();
  ASSERT_TRUE(exact.has_value()) << exact.error().message;
  std::vector<std::vector<int8_t>> integers(variables.all.size());
  std::vector<std::vector<float>> scales(variables.all.size());
  const size_t count = variables.all.size();
  for (size_t i = 0; i < count; ++i) {
    TensorRef& variable = variables.all[i];
    if (variable.dims.size() != 2 || !variable.name.ends_with("/weight")) continue;
    const std::vector<float> values = to_f32(variable.bytes, variable.dtype);
    const size_t rows = variable.dims[0], width = variable.dims[1];
    for (size_t n = 0; n < rows; ++n) {
      float most = 1e-6f;
      for (size_t k = 0; k < width; ++k) most = std::max(most, std::fabs(values[n * width + k]));
      scales[i].push_back(127.0f / most);
      for (size_t k = 0; k < width; ++k)
        integers[i].push_back(static_cast<int8_t>(std::lround(values[n * width + k] * scales[i].back())));
    }
    variable.dtype = DType::kI8;
    variable.bytes = std::as_bytes(std::span(integers[i]));
    const std::string scale_name = variable.name + "_scale";
    variables.all.push_back({scale_name, DType::kF32, {rows}, std::as_bytes(std::span(scales[i]))});
  }
  const auto quantised = variables.load();
  ASSERT_TRUE(quantised.has_value()) << quantised.error().message;
  const double away = relative(logits_of(*quantised), logits_of(*exact));
  EXPECT_LE(away, 0.05);
  EXPECT_GT(away, 1e-5);
  // Without its scales, or with one that is zero, such a matrix is nothing.
  const float zero = 0;
  variables.at("decoder/layer_0/ffn/linear_0/weight_scale").dims = {1};
  variables.at("decoder/layer_0/ffn/linear_0/weight_scale").bytes = std::as_bytes(std::span(&zero, 1));
  EXPECT_NE(variables.refusal().find("zero or not finite"), std::string::npos);
  variables.at("decoder/layer_0/ffn/linear_0/weight_scale").name = "elsewhere";
  EXPECT_NE(variables.refusal().find("no scale a row"), std::string::npos);
}

TEST(WhisperCheckpoint, FaultsNameTheirVariable) {
  {
    Variables variables;
    variables.at("encoder/layer_1/ffn/linear_1/bias").name = "another";
    EXPECT_NE(variables.refusal().find("encoder/layer_1/ffn/linear_1/bias is missing"), std::string::npos);
  }
  {
    Variables variables;
    TensorRef& norm = variables.at("decoder/layer_norm/gamma");
    norm.dims = {norm.dims[0] / 2};
    norm.bytes = norm.bytes.first(norm.bytes.size() / 2);
    EXPECT_NE(variables.refusal().find("decoder/layer_norm/gamma has the shape [16], not [32]"), std::string::npos);
  }
  {
    Variables variables;
    const uint16_t heads = 5;
    variables.at("decoder/num_heads").bytes = std::as_bytes(std::span(&heads, 1));
    EXPECT_NE(variables.refusal().find("5 heads over a width of 32"), std::string::npos);
  }
  {
    Variables variables;
    const int8_t swish = 2;
    variables.at("decoder/activation").bytes = std::as_bytes(std::span(&swish, 1));
    EXPECT_NE(variables.refusal().find("decoder/activation = 2"), std::string::npos);
  }
  {
    Variables variables;
    variables.at("encoder/conv1/weight").name = "x";
    EXPECT_NE(variables.refusal().find("no tensor encoder/conv1/weight"), std::string::npos);
  }
  const TempFolder empty;
  EXPECT_EQ(Model::load(empty.path()).error().code, Code::kNotFound);
  EXPECT_EQ(Model::load(empty.file("nothing.bin")).error().code, Code::kNotFound);
  std::ofstream(empty.file("model.bin"), std::ios::binary) << test::ct2_bytes({}, {}, "TransformerSpec");
  EXPECT_EQ(Model::load(empty.path()).error().code, Code::kUnsupported);
}

TEST(WhisperCheckpoint, ReadsJsonWithinBounds) {
  Config config;
  EXPECT_TRUE(add_json(R"({"suppress_tokens": null, "lang_to_id": {"<|de|>": 9, "<|en|>": 4}, "x": 1})", "a", config));
  EXPECT_EQ(config.language_ids, (std::vector<int32_t>{4, 9}));
  for (const char* bad : {"[]", "{", R"({"suppress_ids": 3})", R"({"suppress_ids": [-1]})", R"({"lang_ids": ["en"]})",
                          R"({"alignment_heads": [[1]]})", R"({"alignment_heads": [[1, -1]]})", R"({"lang_to_id": []})",
                          R"({"encoder_attention_heads": 99999999999})"}) {
    const Status read = add_json(bad, "bad", config);
    ASSERT_FALSE(read.has_value()) << bad;
    EXPECT_EQ(read.error().code, Code::kDataLoss) << bad;
  }
  EXPECT_EQ(add_json(R"({"activation_function": "relu"})", "bad", config).error().code, Code::kUnsupported);
}

TEST(WhisperCheckpoint, ChecksDimensions) {
  const Config good = load("ct2")->config();
  EXPECT_TRUE(check_config(good, "good").has_value());
  const auto refused = [&](auto change) {
    Config config = good;
    change(config);
    const Status checked = check_config(config, "bad");
    EXPECT_FALSE(checked.has_value());
    return checked ? Code::kInternal : checked.error().code;
  };
  EXPECT_EQ(refused([](Config& c) { c.mels = 0; }), Code::kDataLoss);
  EXPECT_EQ(refused([](Config& c) { c.encoder_layers = 1000; }), Code::kLimitExceeded);
  EXPECT_EQ(refused([](Config& c) { c.decoder_hidden = 70; }), Code::kUnsupported);
  EXPECT_EQ(refused([](Config& c) { c.alignment_heads = {{9, 0}}; }), Code::kDataLoss);
  EXPECT_EQ(refused([](Config& c) { c.alignment_heads = {{1, 0}, {0, 1}, {1, 0}}; }), Code::kDataLoss);
  EXPECT_EQ(refused([](Config& c) { c.text_positions = 15; }), Code::kDataLoss);
  EXPECT_EQ(refused([](Config& c) { c.suppress_ids = {5000}; }), Code::kDataLoss);
}

}  // namespace
}  // namespace syrinx::whisper
