// The family's line of the table: places, voices, parts and descriptions; with the small checkpoints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/families/families.h"
#include "engine/families/find_chat_files.h"
#include "engine/families/find_speech_files.h"
#include "engine/families/inspect.h"
#include "engine/families/qwen_tts/qwen_remote.h"
#include "engine/families/qwen_tts/qwen_tts_family.h"
#include "tests/base/temp_folder.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;
using testing::Contains, testing::HasSubstr, testing::IsEmpty, testing::Pair;
const std::string kData = std::string(SYRINX_TEST_DATA) + "/qwen_tts/";

TEST(QwenFamily, FoldersAndTheirFilesAreRecognised) {
  for (const std::string place : {"custom_voice", "base", "voice_design", "custom_voice/config.json",
                                  "custom_voice/model.safetensors", "base/model.safetensors.index.json"}) {
    const auto files = find_speech_files(kData + place, "/nowhere");
    ASSERT_TRUE(files) << place << files.error().message;
    EXPECT_EQ(files->family, &qwen_tts_family()) << place;
    EXPECT_THAT(files->checkpoint, testing::EndsWith("/config.json"));
  }
  EXPECT_FALSE(find_chat_files(kData + "custom_voice", "/nowhere"));
}

TEST(QwenFamily, TableAnswersForEachKind) {
  const SpeechFamily& family = qwen_tts_family();
  EXPECT_EQ(find_speech_family("qwen-tts"), &family);
  const auto custom = find_speech_files(kData + "custom_voice", "/nowhere");
  EXPECT_EQ(family.voices(*custom)->size(), 9u);
  EXPECT_EQ(family.default_voice(*custom), "ryan");
  EXPECT_TRUE(family.check_voice(*custom, "VIVIAN"));
  EXPECT_EQ(family.check_voice(*custom, "nobody").error().code, Code::kNotFound);
  EXPECT_EQ(family.check_voice_file(*custom, "me", kData + "x.wav").error().code, Code::kUnsupported);
  EXPECT_EQ(family.spoken_languages(*custom).size(), 10u);
  const auto design = find_speech_files(kData + "voice_design", "/nowhere");
  EXPECT_THAT(*family.voices(*design), IsEmpty());
  EXPECT_TRUE(family.check_voice(*design, ""));
  EXPECT_EQ(family.check_voice(*design, "ryan").error().code, Code::kUnsupported);
  EXPECT_THAT(family.lacking(*design), testing::ElementsAre("carry_seconds"));
  const auto base = find_speech_files(kData + "base", "/nowhere");
  EXPECT_EQ(family.check_voice(*base, "").error().code, Code::kNotFound);
  EXPECT_THAT(family.parts(*base), testing::SizeIs(2));
  EXPECT_FALSE(family.parts(*base)[1].fault);
}

TEST(QwenFamily, MissingCodecIsFault) {
  const TempFolder folder;
  fs::copy(kData + "custom_voice", folder.path() + "/model");
  const auto files = find_speech_files(folder.path() + "/model", "/nowhere");
  ASSERT_TRUE(files);
  ASSERT_TRUE(qwen_tts_family().parts(*files)[1].fault);
  const auto engine = load_speech_engine({.files = *files});
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, Code::kNotFound);
  EXPECT_THAT(engine.error().message, HasSubstr("holds no codec"));
}

TEST(QwenFamily, FilesAreDescribed) {
  const auto folder = describe_file(kData + "custom_voice");
  ASSERT_TRUE(folder) << folder.error().message;
  EXPECT_EQ(folder->model, "qwen-tts");
  EXPECT_THAT(folder->facts, Contains(Pair("kind", "custom_voice")));
  EXPECT_THAT(folder->facts, Contains(Pair("instructions", "not taken")));
  const auto codec = describe_file(kData + "speech_tokenizer/config.json");
  ASSERT_TRUE(codec) << codec.error().message;
  EXPECT_THAT(codec->facts, Contains(Pair("frame_samples", "1920")));
  for (const char* const weights : {"custom_voice/model.safetensors", "speech_tokenizer/model.safetensors"})
    EXPECT_EQ(describe_file(kData + weights)->model, "qwen-tts") << weights;
  EXPECT_NE(describe_file(std::string(SYRINX_TEST_DATA) + "/pocket_tts/english/model.safetensors")->model, "qwen-tts");
}

TEST(QwenFamily, RemotePartsLieBesideConfiguration) {
  const TempFolder folder;
  fs::copy(kData + "custom_voice/config.json", folder.path());
  const std::string config = folder.path() + "/config.json";
  EXPECT_THAT(*qwen_remote_parts(config, config), IsEmpty());
  write_text(folder.path() + "/model.safetensors", "x");
  const auto parts = qwen_remote_parts(config, "hf://owner/model/config.json@main");
  ASSERT_TRUE(parts);
  EXPECT_THAT(*parts,
              testing::ElementsAre("hf://owner/model/generation_config.json@main", "hf://owner/model/vocab.json@main",
                                   "hf://owner/model/merges.txt@main", "hf://owner/model/tokenizer_config.json@main",
                                   "hf://owner/model/speech_tokenizer/config.json@main",
                                   "hf://owner/model/speech_tokenizer/model.safetensors@main"));
  fs::copy(kData + "custom_voice/vocab.json", folder.path());
  const auto web = qwen_remote_parts(config, "https://example.org/m/config.json?x=1");
  EXPECT_THAT(*web, Contains("https://example.org/m/merges.txt?x=1"));
  EXPECT_THAT(*web, testing::Not(Contains(HasSubstr("vocab.json"))));
}

}  // namespace
}  // namespace syrinx
