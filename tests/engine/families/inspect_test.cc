#include "engine/families/inspect.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "tests/tensor/gguf_bytes.h"

namespace syrinx {
namespace {

std::string data(const std::string& name) { return std::string(SYRINX_TEST_DATA) + "/" + name; }

FileDescription describe(const std::string& path) {
  auto description = describe_file(path);
  EXPECT_TRUE(description.has_value()) << description.error().message;
  return description ? *description : FileDescription{};
}

const TensorDescription* find(const std::vector<TensorDescription>& list, const std::string& name) {
  for (const TensorDescription& tensor : list)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

Result<FileDescription> describe_content(const std::string& bytes) {
  std::string path = testing::TempDir() + "/inspect_XXXXXX";
  const int descriptor = ::mkstemp(path.data());
  EXPECT_GE(descriptor, 0);
  ::close(descriptor);
  std::ofstream(path, std::ios::binary) << bytes;
  auto description = describe_file(path);
  ::unlink(path.c_str());
  return description;
}

TEST(Inspect, TellsEveryKindByItsContent) {
  const std::pair<const char*, const char*> cases[] = {{"tensor/plain.safetensors", "safetensors"},
                                                       {"tensor/wired.onnx", "onnx"},
                                                       {"tensor/nested.pth", "torch"},
                                                       {"tensor/arrays.npz", "npz"},
                                                       {"tensor/single.npy", "npy"},
                                                       {"llama/smollm_gguf/smollm_gguf.gguf", "gguf"},
                                                       {"kokoro/tiny_voice.bin", "voice"},
                                                       {"kokoro/tiny.onnx", "onnx"},
                                                       {"kokoro/tiny.pth", "torch"}};
  for (const auto& [file, kind] : cases) {
    const FileDescription description = describe(data(file));
    EXPECT_EQ(description.kind, kind) << file;
    EXPECT_FALSE(description.tensors.empty()) << file;
    EXPECT_GT(description.size_bytes, 0u) << file;
  }
}

TEST(Inspect, TellsRecognisers) {
  const FileDescription whisper = describe(data("whisper/ct2/model.bin"));
  EXPECT_EQ(whisper.kind, "ctranslate2");
  EXPECT_EQ(whisper.model, "whisper");
  EXPECT_NE(find(whisper.tensors, "encoder/conv1/weight"), nullptr);
  const FileDescription transducer = describe(data("transducer/tdt.nemo"));
  EXPECT_EQ(transducer.kind, "nemo");
  EXPECT_EQ(transducer.model, "transducer");
  EXPECT_NE(to_text(transducer).find("head: tdt"), std::string::npos) << to_text(transducer);
  EXPECT_FALSE(transducer.tensors.empty());
  EXPECT_FALSE(describe_content("lmgg and nothing else"));
  EXPECT_FALSE(describe_content(std::string("\6\0\0\0\14\0WhisperSpec\0\1", 19)));
  EXPECT_FALSE(describe_content("\x1f\x8b\x08 cut off"));
}

// What their streams may be asked for.
std::string fact(const FileDescription& description, const std::string& name) {
  for (const auto& [each, value] : description.facts)
    if (each == name) return value;
  return "";
}

TEST(Inspect, LanguageModelsTellTheirShape) {
  const FileDescription model = describe(data("llama/chat_smollm/chat_smollm.gguf"));
  EXPECT_EQ(model.model, "llama");
  EXPECT_EQ(fact(model, "architecture"), "llama");
  for (const char* const name : {"version", "context", "layers", "width", "heads", "key_value_heads", "types"})
    EXPECT_NE(fact(model, name), "") << name;
  EXPECT_NE(find(model.tensors, "token_embd.weight"), nullptr);
}

TEST(Inspect, GgufOfAnotherKindIsDescribed) {
  test::GgufBytes file;
  file.entries = {test::GgufBytes::entry("general.architecture", 8, test::GgufBytes::string("bird")),
                  test::GgufBytes::entry("general.name", 8, test::GgufBytes::string("A bird")),
                  test::GgufBytes::number<uint32_t>("bird.context_length", 4, 77),
                  test::GgufBytes::entry("bird.block_count", 8, test::GgufBytes::string("many"))};
  file.tensors = {{"wing", {32, 2}, 3, 0}, {"beak", {8}, 0, 64}, {"tail", {32}, 3, 96}};
  file.blocks = std::string(128, '\0');
  const auto bird = describe_content(file.file());
  ASSERT_TRUE(bird) << bird.error().message;
  EXPECT_EQ(bird->kind, "gguf");
  EXPECT_EQ(bird->model, "");
  EXPECT_EQ(fact(*bird, "name"), "A bird");
  EXPECT_EQ(fact(*bird, "context"), "77");
  EXPECT_EQ(fact(*bird, "layers"), "");
  EXPECT_EQ(fact(*bird, "types"), "Q4_1 2, f32 1");
  ASSERT_NE(find(bird->tensors, "wing"), nullptr);
  EXPECT_EQ(find(bird->tensors, "wing")->dims, (std::vector<size_t>{2, 32}));
  EXPECT_EQ(find(bird->tensors, "wing")->size_bytes, 40u);
  const auto cut = describe_content(file.file().substr(0, 100));
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, Code::kDataLoss);
}

TEST(Inspect, TellsHowTransducersStream) {
  const std::pair<const char*, const char*> cases[] = {
      {"nemotron.nemo", "chunks that look 5/3/1/0 frames ahead"},
      {"regular_streaming.nemo", "chunks that look 0/2/1 frames ahead in each block"},
      {"unified.nemo",
       "windows of 1/2/3 frames with 5/6 before and 0/1/2 behind them, 0.48,0.16,0.16 s where none is asked for"},
      {"tdt.nemo", "windows of any size, 10,2,2 s where none is asked for"},
      {"conformer_ctc.nemo", "windows of any size, 10,2,2 s where none is asked for"}};
  for (const auto& [file, streams] : cases)
    EXPECT_NE(to_text(describe(data(std::string("transducer/") + file))).find(fmt::format("\nstreams: {}\n", streams)),
              std::string::npos)
        << file;
}

TEST(Inspect, ListsTensorsAndFacts) {
  const FileDescription plain = describe(data("tensor/plain.safetensors"));
  const TensorDescription* const tensor = find(plain.tensors, "a.weight");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->dtype, "f32");
  EXPECT_EQ(tensor->dims, (std::vector<size_t>{3, 4}));
  EXPECT_EQ(tensor->size_bytes, 48u);
  EXPECT_TRUE(plain.model.empty());
  const FileDescription wired = describe(data("tensor/wired.onnx"));
  EXPECT_EQ(wired.facts[0], (std::pair<std::string, std::string>{"producer", "tensor_files"}));
  EXPECT_EQ(wired.facts[1].second, "3");
  EXPECT_EQ(find(describe(data("tensor/arrays.npz")).tensors, "text")->dtype, "text");
  EXPECT_EQ(describe(data("kokoro/tiny_voice.bin")).tensors[0].dims, (std::vector<size_t>{510, 8}));
}

TEST(Inspect, KnowsAKokoroInBothContainers) {
  for (const char* file : {"kokoro/tiny.onnx", "kokoro/tiny.pth"}) {
    const FileDescription description = describe(data(file));
    EXPECT_EQ(description.model, "kokoro") << file;
    EXPECT_NE(find(description.weights, "decoder.generator.conv_post.weight"), nullptr) << file;
  }
}

TEST(Inspect, ReadsTheHeaderOfAWav) {
  std::string wav("RIFF\x2c\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\xc0\x5d\0\0\x80\xbb\0\0\2\0\x10\0data\x80\xbb\0\0", 44);
  wav += std::string(48000, '\0');
  const auto description = describe_content(wav);
  ASSERT_TRUE(description.has_value()) << description.error().message;
  EXPECT_EQ(description->kind, "wav");
  const std::vector<std::pair<std::string, std::string>> facts = {{"format", "1"},         {"channels", "1"},
                                                                  {"rate_hz", "24000"},    {"bits", "16"},
                                                                  {"data_bytes", "48000"}, {"seconds", "1.000"}};
  EXPECT_EQ(description->facts, facts);
  EXPECT_EQ(describe_content(wav.substr(0, 36)).error().code, Code::kDataLoss);
  EXPECT_EQ(describe_content(wav.substr(0, 20)).error().code, Code::kDataLoss);
}

TEST(Inspect, UnreadableFilesAreNamed) {
  EXPECT_EQ(describe_file(data("no such file")).error().code, Code::kNotFound);
  for (const std::string& bytes : {std::string(), std::string("text"), std::string(2040, '\xff')}) {
    const auto description = describe_content(bytes);
    ASSERT_FALSE(description.has_value());
    EXPECT_EQ(description.error().code, Code::kUnsupported);
    EXPECT_NE(description.error().message.find("safetensors, ONNX"), std::string::npos);
  }
  EXPECT_EQ(describe_content("\x08\x07garbage").error().code, Code::kDataLoss);
  EXPECT_EQ(describe_file(data("tensor/seekable.zip")).error().code, Code::kUnsupported);
}

TEST(Inspect, WritesJsonAndText) {
  const FileDescription description = describe(data("kokoro/tiny.onnx"));
  const auto again = parse_json(to_json(description).dump(), "json");
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(*again->find("kind")->string(), "onnx");
  EXPECT_EQ(*again->find("model")->string(), "kokoro");
  EXPECT_EQ(again->find("tensors")->array()->size(), description.tensors.size());
  EXPECT_EQ(again->find("weights")->array()->size(), description.weights.size());
  EXPECT_NE(again->find("facts")->find("nodes"), nullptr);
  const std::string text = to_text(description);
  EXPECT_NE(text.find("model: kokoro"), std::string::npos);
  EXPECT_NE(text.find("decoder.decoder.generator.conv_post.bias"), std::string::npos);
  FileDescription rude = description;
  rude.tensors[0].name = "\x1b[2J\n\xC2\x9B\x32J";
  rude.facts.emplace_back("\x1b", "\xC2\x9B");
  EXPECT_EQ(to_text(rude).find('\x1b'), std::string::npos);
  EXPECT_EQ(to_text(rude).find("\xC2\x9B"), std::string::npos);
  EXPECT_NE(to_text(rude).find(" [2J   2J"), std::string::npos);
}

TEST(Inspect, KnowsThePartsOfPocketTts) {
  const auto fact = [](const FileDescription& description, const std::string& name) {
    for (const auto& [key, value] : description.facts)
      if (key == name) return value;
    return std::string();
  };
  for (const char* path : {"pocket_tts/english", "pocket_tts/english/config.yaml"}) {
    const FileDescription config = describe(data(path));
    EXPECT_EQ(config.kind, "yaml");
    EXPECT_EQ(config.model, "pocket-tts");
    EXPECT_EQ(fact(config, "layers"), "2");
    EXPECT_EQ(fact(config, "flow_head"), "lsd, 2 blocks of 24");
    EXPECT_EQ(fact(config, "weights"), "model.safetensors");
    EXPECT_NE(to_text(config).find("model: pocket-tts\nlayers: 2"), std::string::npos);
  }
  const FileDescription weights = describe(data("pocket_tts/english_18m/model.safetensors"));
  EXPECT_EQ(weights.model, "pocket-tts");
  EXPECT_NE(fact(weights, "codec_numbers"), "");
  const FileDescription voice = describe(data("pocket_tts/english/voice.safetensors"));
  EXPECT_EQ(voice.model, "pocket-tts");
  EXPECT_EQ(fact(voice, "voice_layers"), "2");
  EXPECT_EQ(fact(voice, "voice_positions"), "7");
  EXPECT_EQ(describe(data("tensor/plain.safetensors")).model, "");
  EXPECT_EQ(describe_file(data("pocket_tts")).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace syrinx
