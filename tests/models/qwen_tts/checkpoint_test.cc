#include "models/qwen_tts/checkpoint.h"

#include <filesystem>

#include "talker_cases.h"
#include "temp_folder.h"

namespace syrinx::qwen_tts {
namespace {

using namespace test;
namespace fs = std::filesystem;

void link(const std::string& from, const fs::path& to) {
  fs::create_directories(to);
  for (const auto& entry : fs::directory_iterator(data_folder(from)))
    fs::create_symlink(entry.path(), to / entry.path().filename());
}

TEST(QwenTtsCheckpoint, OpensFilesAndShards) {
  for (const char* const kind : {"base", "custom_voice", "voice_design"}) {
    const auto opened = Checkpoint::open(data_folder(kind));
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    EXPECT_EQ(kind_name(opened->config().kind), std::string(kind));
    EXPECT_EQ(opened->generation().max_frames, 8192u);
    EXPECT_EQ(opened->tensors().files.size(), std::string(kind) == "base" ? 2u : 1u);
    EXPECT_TRUE(Checkpoint::recognises(data_folder(kind)));
  }
  const auto by_file = Checkpoint::open(data_folder("custom_voice/model.safetensors"));
  ASSERT_TRUE(by_file.has_value()) << by_file.error().message;
  EXPECT_EQ(by_file->folder(), data_folder("custom_voice"));
  EXPECT_FALSE(Checkpoint::recognises(data_folder("speech_tokenizer")));
  EXPECT_FALSE(Checkpoint::recognises(data_folder("none")));
}

TEST(QwenTtsCheckpoint, MissingFilesAreNamed) {
  const TempFolder folder;
  const auto expect_missing = [&](const std::string& path, const std::string& words) {
    const auto opened = Checkpoint::open(path);
    ASSERT_FALSE(opened.has_value()) << words;
    EXPECT_EQ(opened.error().code, Code::kNotFound) << opened.error().message;
    EXPECT_NE(opened.error().message.find(words), std::string::npos) << opened.error().message;
  };
  expect_missing(folder.path() + "/none", "no file or folder");
  expect_missing(folder.path(), "holds no config.json");
  link("custom_voice", folder.path() + "/model");
  fs::remove(folder.path() + "/model/generation_config.json");
  const auto opened = Checkpoint::open(folder.path() + "/model");
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  EXPECT_EQ(opened->generation().max_frames, 2048u);
  fs::remove(folder.path() + "/model/model.safetensors");
  expect_missing(folder.path() + "/model", "neither model.safetensors nor");
}

TEST(QwenTtsCheckpoint, FindsCodecInOrBeside) {
  const TempFolder folder;
  const std::string model = folder.path() + "/models/model";
  link("custom_voice", model);
  const auto missing = find_codec(model);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_NE(missing.error().message.find("speech_tokenizer"), std::string::npos);
  fs::create_directories(folder.path() + "/models/Qwen3-TTS-Tokenizer-0Hz");  // without the files
  link("speech_tokenizer", folder.path() + "/models/Qwen3-TTS-Tokenizer-12Hz");
  EXPECT_EQ(fs::path(good(find_codec(model))).filename(), "Qwen3-TTS-Tokenizer-12Hz");
  link("speech_tokenizer", folder.path() + "/models/speech_tokenizer");
  EXPECT_EQ(fs::path(good(find_codec(model))).filename(), "speech_tokenizer");
  link("speech_tokenizer", model + "/speech_tokenizer");
  EXPECT_EQ(good(find_codec(model)), model + "/speech_tokenizer");
}

Status read(const Checkpoint& checkpoint, const std::vector<TensorRef>& tensors) {
  const auto weights = read_weights(tensors, checkpoint.config(), {}, "folder");
  if (!weights) return tl::unexpected(weights.error());
  return {};
}

TEST(QwenTtsWeights, WrongTensorsAreNamed) {
  const auto checkpoint = Checkpoint::open(data_folder("voice_design"));
  ASSERT_TRUE(checkpoint.has_value());
  const std::vector<TensorRef> whole = checkpoint->tensors().tensors;
  EXPECT_EQ(whole.size(), 11u + 2 * 11 + 2 * 11 + 30);
  for (const TensorRef& tensor : whole) {
    std::vector<TensorRef> others = whole;
    std::erase_if(others, [&](const TensorRef& one) { return one.name == tensor.name; });
    const Status status = read(*checkpoint, others);
    ASSERT_FALSE(status.has_value()) << tensor.name;
    EXPECT_EQ(status.error().code, Code::kDataLoss);
    EXPECT_NE(status.error().message.find(tensor.name), std::string::npos) << status.error().message;
  }
  std::vector<TensorRef> more = whole;
  more.push_back(whole.front());
  more.back().name = "talker.other";
  const Status unknown = read(*checkpoint, more);
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, Code::kUnsupported);
  EXPECT_NE(unknown.error().message.find("'talker.other'"), std::string::npos) << unknown.error().message;
  more.back().name = "speaker_encoder.fc.bias";
  EXPECT_TRUE(read(*checkpoint, more).has_value());
}

// Codes and logits of four frames.
struct Frames {
  std::vector<int32_t> codes;
  std::vector<float> logits;
  bool operator==(const Frames&) const = default;
};
Frames frames_of(const std::shared_ptr<const Weights>& weights, const Case& one) {
  Frames made;
  Running run(weights);
  const auto note = [&](View<const float, 2> rows) {
    for (size_t n = 0; n < rows.extent(0); ++n)
      made.logits.insert(made.logits.end(), rows.row(n), rows.row(n) + rows.extent(1));
  };
  run.generator->set_probe([&](std::string_view stage, View<const float, 2> rows) {
    if (stage == "logits") note(rows);
  });
  run.generator->predictor().set_probe([&](std::string_view, size_t, View<const float, 2> rows) { note(rows); });
  FrameStream stream = run.begun(prompt_of(one, weights->config), greedy(4));
  made.codes = run.frames(stream);
  return made;
}

TEST(QwenTtsWeights, KeptWeightsGiveSameFrames) {
  for (const char* const name : {"voice", "instructed"})
    for (const Precision precision : {Precision::kF32, Precision::kBf16, Precision::kInt8, Precision::kInt4}) {
      SCOPED_TRACE(fmt::format("{} {}", name, precision_name(precision)));
      const TempFolder folder;
      const Case one = case_of(name);
      const Frames first = frames_of(weights_of(one.kind, precision), one);
      EXPECT_EQ(first.codes.size(), 4u * 16);
      const auto checkpoint = Checkpoint::open(data_folder(one.kind));
      ASSERT_TRUE(checkpoint.has_value());
      for (int start = 0; start < 2; ++start) {
        const auto weights = good(load_weights(*checkpoint, {.precision = precision, .cache_folder = folder.path()}));
        EXPECT_NE(weights->packed, nullptr);
        EXPECT_TRUE(frames_of(weights, one) == first) << start;
      }
    }
}

}  // namespace
}  // namespace syrinx::qwen_tts
