#include "models/pocket_tts/voice_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "../../base/temp_folder.h"
#include "models/pocket_tts/config_file.h"
#include "tensor/safetensors.h"

namespace syrinx::pocket {
namespace {

using testing::HasSubstr;

const std::string kData = std::string(SYRINX_TEST_DATA) + "/pocket_tts/";

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

Config config_of(const std::string& model) {
  const auto read = parse_config(read_text(kData + model + "/config.yaml"), model);
  EXPECT_TRUE(read) << read.error().message;
  return read ? read->config : Config{};
}

Voice voice_of(const std::string& model, const std::string& file) {
  const std::string bytes = read_text(kData + model + "/" + file);
  const auto read = parse_voice_file(bytes_of(bytes), file, config_of(model).flow_lm);
  EXPECT_TRUE(read) << read.error().message;
  return read && std::holds_alternative<Voice>(*read) ? std::get<Voice>(*read) : Voice{};
}

class EveryModel : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, EveryModel,
                         testing::Values("english", "english_18m", "english_2026-01", "english_24l", "english_2m",
                                         "english_7m", "english_drifting", "flow_matching"));

TEST_P(EveryModel, WritesTheTensorsOfTheMakersFile) {
  const Voice voice = voice_of(GetParam(), "voice.safetensors");
  const Config config = config_of(GetParam());
  ASSERT_EQ(voice.layers.size(), config.flow_lm.transformer.layers);
  EXPECT_EQ(voice.positions, config.flow_lm.bos_before_voice ? 7u : 6u);

  const std::string theirs = read_text(kData + GetParam() + "/voice.safetensors");
  const std::string ours = write_voice_file(voice, config.flow_lm);
  const auto expected = Safetensors::parse(bytes_of(theirs), "theirs"),
             got = Safetensors::parse(bytes_of(ours), "ours");
  ASSERT_TRUE(expected && got);
  EXPECT_EQ(expected->tensors().size(), got->tensors().size());
  for (const TensorRef& tensor : expected->tensors()) {
    const TensorRef* const mine = got->find(tensor.name);
    ASSERT_NE(mine, nullptr) << tensor.name;
    EXPECT_EQ(mine->dims, tensor.dims) << tensor.name;
    EXPECT_EQ(mine->dtype, tensor.dtype) << tensor.name;
    EXPECT_TRUE(std::equal(mine->bytes.begin(), mine->bytes.end(), tensor.bytes.begin(), tensor.bytes.end()));
  }
}

TEST_P(EveryModel, FitsNoOtherModel) {
  const std::string bytes = read_text(kData + GetParam() + "/voice.safetensors");
  FlowLmConfig config = config_of(GetParam()).flow_lm;
  ++config.transformer.layers;
  const auto more = parse_voice_file(bytes_of(bytes), "v", config);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Code::kUnsupported);
  EXPECT_THAT(more.error().message, HasSubstr(fmt::format("the model has {} layers", config.transformer.layers)));
  config.transformer.layers -= 2;
  const auto fewer = parse_voice_file(bytes_of(bytes), "v", config);
  ASSERT_FALSE(fewer);
  EXPECT_EQ(fewer.error().code, Code::kUnsupported);
  ++config.transformer.layers;
  config.transformer.heads *= 2;
  const auto heads = parse_voice_file(bytes_of(bytes), "v", config);
  ASSERT_FALSE(heads);
  EXPECT_THAT(heads.error().message, HasSubstr("use a voice made for it"));
}

TEST(VoiceFile, OlderFilesAreTheSameVoice) {
  const Voice voice = voice_of("english", "voice.safetensors"), older = voice_of("english", "voice_older.safetensors");
  EXPECT_EQ(older.positions, 7u);  // of a cache of nine
  ASSERT_EQ(older.layers.size(), voice.layers.size());
  for (size_t i = 0; i < voice.layers.size(); ++i) {
    EXPECT_EQ(older.layers[i].keys, voice.layers[i].keys);
    EXPECT_EQ(older.layers[i].values, voice.layers[i].values);
  }
}

TEST(VoiceFile, ReadsPrompts) {
  const std::string bytes = read_text(kData + "english_2026-01/voice_prompt.safetensors");
  const FlowLmConfig config = config_of("english_2026-01").flow_lm;
  const auto read = parse_voice_file(bytes_of(bytes), "v", config);
  ASSERT_TRUE(read) << read.error().message;
  const VoicePrompt& prompt = std::get<VoicePrompt>(*read);
  EXPECT_EQ(prompt.positions, 6u);
  const std::string stages = read_text(kData + "english_2026-01/reference.safetensors");
  const auto reference = Safetensors::parse(bytes_of(stages), "reference");
  ASSERT_TRUE(reference);
  const TensorRef* const projected = reference->find("voice.projected");
  ASSERT_NE(projected, nullptr);
  EXPECT_EQ(prompt.rows, to_f32(projected->bytes, projected->dtype));
}

// Files of a model of two layers, one key head of two numbers, width 3.
FlowLmConfig tiny_config() {
  FlowLmConfig config;
  config.transformer.width = 3;
  config.transformer.layers = 2;
  config.transformer.heads = 2;
  config.transformer.key_heads = 1;
  config.transformer.attention_width = 4;
  return config;
}
struct Tensors {
  struct Tensor {
    std::string name;
    DType dtype;
    std::vector<size_t> dims;
    std::string bytes;
  };
  std::vector<Tensor> list;

  template <class T>
  Tensors& set(const std::string& name, DType dtype, std::vector<size_t> dims, const std::vector<T>& values) {
    std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    for (Tensor& tensor : list)
      if (tensor.name == name) return tensor = {name, dtype, std::move(dims), std::move(bytes)}, *this;
    list.push_back({name, dtype, std::move(dims), std::move(bytes)});
    return *this;
  }
  Tensors& remove(const std::string& name) {
    std::erase_if(list, [&](const Tensor& tensor) { return tensor.name == name; });
    return *this;
  }
  std::string file() const {
    std::vector<TensorRef> refs;
    for (const Tensor& tensor : list) refs.push_back({tensor.name, tensor.dtype, tensor.dims, bytes_of(tensor.bytes)});
    return write_safetensors(refs);
  }
};
const std::string kLayer0 = "transformer.layers.0.self_attn/", kLayer1 = "transformer.layers.1.self_attn/";
// Two of three positions are valid; the third holds no numbers.
Tensors tiny() {
  Tensors out;
  const float no = std::nanf("");
  for (const std::string& layer : {kLayer0, kLayer1}) {
    out.set<float>(layer + "cache", DType::kF32, {2, 1, 3, 1, 2}, {1, 2, 3, 4, no, no, 5, 6, 7, 8, no, no});
    out.set<int64_t>(layer + "offset", DType::kI64, {1}, {2});
  }
  return out;
}
Result<VoiceFile> read(const Tensors& tensors) {
  return parse_voice_file(bytes_of(tensors.file()), "v", tiny_config());
}
void expect_fault(const Tensors& tensors, Code code, const std::string& part) {
  const auto file = read(tensors);
  ASSERT_FALSE(file) << part;
  EXPECT_EQ(file.error().code, code) << file.error().message;
  EXPECT_THAT(file.error().message, HasSubstr(part));
  EXPECT_THAT(file.error().message, HasSubstr("'v'"));
}

TEST(VoiceFile, IgnoresPositionsBehindTheLength) {
  const auto file = read(tiny());
  ASSERT_TRUE(file) << file.error().message;
  const Voice& voice = std::get<Voice>(*file);
  EXPECT_EQ(voice.positions, 2u);
  EXPECT_EQ(voice.layers[1].keys, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(voice.layers[1].values, (std::vector<float>{5, 6, 7, 8}));
}

TEST(VoiceFile, WidensBothSmallTypes) {
  Tensors tensors = tiny();
  tensors.set<uint16_t>(kLayer0 + "cache", DType::kBF16, {2, 1, 2, 1, 2},
                        {0x3F80, 0x4000, 0, 0xBF80, 0x3F00, 0x4040, 0x4080, 0x8000});
  tensors.set<uint16_t>(kLayer1 + "cache", DType::kF16, {2, 1, 2, 1, 2},
                        {0x3C00, 0x4000, 0, 0xBC00, 0x3800, 0x4200, 0x4400, 0x8000});
  tensors.set<int32_t>(kLayer1 + "pad", DType::kI32, {1}, {0});
  const auto file = read(tensors);
  ASSERT_TRUE(file) << file.error().message;
  for (const VoiceLayer& layer : std::get<Voice>(*file).layers) {
    EXPECT_EQ(layer.keys, (std::vector<float>{1, 2, 0, -1}));
    EXPECT_EQ(layer.values, (std::vector<float>{0.5f, 3, 4, 0}));
  }
}

TEST(VoiceFile, RefusesVoicesOfOtherModels) {
  const float no = std::nanf("");
  expect_fault(Tensors(), Code::kDataLoss, "it is not a voice of Pocket TTS");
  expect_fault(tiny().remove(kLayer1 + "cache"), Code::kUnsupported, "the model has 2 layers");
  expect_fault(tiny().remove(kLayer1 + "offset"), Code::kDataLoss, "has neither");
  expect_fault(tiny().set<float>("transformer.layers.2.self_attn/cache", DType::kF32, {1}, {1}), Code::kUnsupported,
               "layers.2.self_attn/cache', but the model has 2 layers");
  expect_fault(tiny().set<int64_t>(kLayer0 + "offset", DType::kI64, {1}, {4}), Code::kDataLoss,
               "room for 3 positions, but 4");
  expect_fault(tiny().set<int64_t>(kLayer0 + "offset", DType::kI64, {1}, {0}), Code::kDataLoss, "has no positions");
  expect_fault(tiny().set<int64_t>(kLayer0 + "offset", DType::kI64, {1}, {-1}), Code::kDataLoss, "is -1, below zero");
  expect_fault(tiny().set<int64_t>(kLayer0 + "offset", DType::kI64, {2}, {2, 2}), Code::kDataLoss,
               "not one whole number");
  expect_fault(tiny().set<float>(kLayer0 + "offset", DType::kF32, {1}, {2}), Code::kDataLoss,
               "type f32 is not one whole");
  expect_fault(tiny().set<int64_t>(kLayer0 + "offset", DType::kI64, {1}, {6145}), Code::kLimitExceeded, "at most 6144");
  expect_fault(tiny().set<int64_t>(kLayer1 + "offset", DType::kI64, {1}, {1}), Code::kDataLoss,
               "has 1 positions in layer 1, but 2 in layer 0");
  expect_fault(tiny().set<int64_t>(kLayer1 + "pad", DType::kI64, {1}, {1}), Code::kUnsupported, "padded batch");
  expect_fault(tiny().set<int64_t>(kLayer1 + "pad", DType::kI64, {0}, {}), Code::kDataLoss, "not one whole number");
  expect_fault(tiny().remove(kLayer0 + "offset").set<float>(kLayer0 + "current_end", DType::kF32, {2, 1}, {0, 0}),
               Code::kDataLoss, "not one extent");
  expect_fault(tiny().remove(kLayer0 + "offset").set<float>(kLayer0 + "current_end", DType::kF32, {0}, {}),
               Code::kDataLoss, "has no positions");
  expect_fault(tiny().set<float>(kLayer0 + "cache", DType::kF32, {2, 2, 2, 1, 1}, std::vector<float>(8)),
               Code::kUnsupported, "this model's is [2, 1, T, 1, 2]");
  expect_fault(tiny().set<float>(kLayer0 + "cache", DType::kF32, {8}, std::vector<float>(8)), Code::kUnsupported,
               "shape [8]");
  expect_fault(tiny().set<int32_t>(kLayer0 + "cache", DType::kI32, {2, 1, 2, 1, 2}, std::vector<int32_t>(8)),
               Code::kUnsupported, "has the type i32");
  expect_fault(tiny().set<float>(kLayer0 + "cache", DType::kF32, {2, 1, 2, 1, 2}, {1, no, 1, 1, 1, 1, 1, 1}),
               Code::kDataLoss, "not a number");
  expect_fault(tiny().set<float>(kLayer0 + "cache", DType::kF32, {2, 1, 2, 1, 2}, {1, 1, 1, 1, 1, 1, 1, INFINITY}),
               Code::kDataLoss, "not a number");
}

TEST(VoiceFile, RefusesInvalidPrompts) {
  const auto prompt = [](std::vector<size_t> dims, std::vector<float> values) {
    return Tensors().set<float>("audio_prompt", DType::kF32, std::move(dims), values);
  };
  const auto flat = read(prompt({2, 3}, {1, 2, 3, 4, 5, 6}));
  ASSERT_TRUE(flat) << flat.error().message;
  EXPECT_EQ(std::get<VoicePrompt>(*flat).positions, 2u);
  expect_fault(prompt({1, 3, 2}, std::vector<float>(6)), Code::kUnsupported, "this model's is [1, T, 3]");
  expect_fault(prompt({2, 1, 3}, std::vector<float>(6)), Code::kUnsupported, "shape [2, 1, 3]");
  expect_fault(prompt({6}, std::vector<float>(6)), Code::kUnsupported, "shape [6]");
  expect_fault(prompt({1, 0, 3}, {}), Code::kDataLoss, "has no positions");
  expect_fault(prompt({6145, 3}, std::vector<float>(size_t{6145} * 3)), Code::kLimitExceeded, "at most 6144");
  expect_fault(prompt({1, 1, 3}, {1, NAN, 1}), Code::kDataLoss, "not a number");
  FlowLmConfig newer = tiny_config();
  newer.bos_before_voice = true;
  const std::string older = prompt({1, 2, 3}, {1, 2, 3, 4, 5, 6}).file();
  const auto refused = parse_voice_file(bytes_of(older), "v", newer);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("'v' is a voice of the older kind"));
  const auto broken = parse_voice_file(bytes_of("no file"), "v", tiny_config());
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, Code::kDataLoss);
}

}  // namespace
}  // namespace syrinx::pocket
