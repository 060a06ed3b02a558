#include "engine/recognition/recognition_files.h"
#include "engine/families/families.h"
#include "engine/families/find_recognition_files.h"
#include "engine/families/transducer/transducer_family.h"
#include "engine/families/whisper/whisper_family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/recognition/recogniser.h"
#include "tests/base/temp_folder.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class RecognitionFilesTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text = "x") {
    fs::create_directories(fs::path(path(name)).parent_path());
    write_text(path(name), text);
  }
  std::string path(const std::string& name) const { return folder_.file(name); }
  Result<RecognitionFiles> find(const std::string& model) { return find_recognition_files(model, path("models")); }

  TempFolder folder_;
};

TEST_F(RecognitionFilesTest, FindsTheDefault) {
  write("models/whisper-base/model.bin");
  write("models/whisper-base/config.json", "{}");
  for (const char* name : {"", "whisper-base", "base", "Systran/faster-whisper-base"}) {
    const auto files = find(name);
    ASSERT_TRUE(files) << files.error().message;
    EXPECT_EQ(files->name, "whisper-base");
    EXPECT_EQ(files->family, &whisper_family());
    EXPECT_EQ(files->checkpoint, path("models/whisper-base/model.bin"));
    EXPECT_EQ(files->voice_activity, "");
    EXPECT_EQ(packed_folder({.data = "/d", .cache = "/c"}, *files), "/c/packed/whisper-base");
  }
  write("models/silero-vad/ggml-silero-v6.2.0.bin");
  EXPECT_EQ(find("")->voice_activity, path("models/silero-vad/ggml-silero-v6.2.0.bin"));
}

TEST_F(RecognitionFilesTest, TellsTheFamilyByTheFile) {
  write("a/parakeet.nemo");
  write("b/model_weights.ckpt");
  write("c/model.pt");
  write("c/model_config.yaml");
  write("d/base.pt");
  write("e/model.safetensors");
  write("e/config.json", R"({"model_type": "whisper", "d_model": 512})");
  write("f/model.safetensors");
  write("f/config.json", R"({"model_type": "parakeet_tdt"})");
  write("g/model.safetensors");
  write("g/config.json", R"({"preprocessor": {}, "encoder": {}, "joint": {}})");
  write("j/model.safetensors");
  write("j/config.json", R"({"model_type": "nemotron3_5_asr"})");
  for (const char* name : {"model-00001-of-00002.safetensors", "model.safetensors.index.json"}) {
    write(std::string("h/") + name);
    write(std::string("i/") + name);
  }
  write("h/config.json", R"({"model_type": "nemotron_asr_streaming"})");
  write("i/config.json", R"({"model_type": "whisper"})");
  const std::pair<const char*, const RecognitionFamily*> cases[] = {{"a", &transducer_family()},
                                                                    {"a/parakeet.nemo", &transducer_family()},
                                                                    {"b", &transducer_family()},
                                                                    {"c", &transducer_family()},
                                                                    {"d", &whisper_family()},
                                                                    {"e", &whisper_family()},
                                                                    {"f/model.safetensors", &transducer_family()},
                                                                    {"g", &transducer_family()},
                                                                    {"h", &transducer_family()},
                                                                    {"i", &whisper_family()},
                                                                    {"j", &transducer_family()}};
  for (const auto& [place, family] : cases) {
    const auto files = find(path(place));
    ASSERT_TRUE(files) << files.error().message;
    EXPECT_EQ(files->family, family) << place;
    EXPECT_EQ(packed_folder({.data = "/d", .cache = "/c"}, *files), "/c/packed/files");
  }
  EXPECT_EQ(find(path("h"))->checkpoint, path("h/model.safetensors.index.json"));
  // The order of the families' own readers: one file before an index, and both before a maker's checkpoint.
  write("h/model.safetensors");
  write("h/a.safetensors");
  write("h/model_weights.ckpt");
  EXPECT_EQ(find(path("h"))->checkpoint, path("h/model.safetensors"));
}

TEST_F(RecognitionFilesTest, AsksWhichOfSeveralIsMeant) {
  for (const char* name : {"a/two.nemo", "a/one.nemo", "b/x.safetensors", "b/y.safetensors", "c/base.pt", "c/tiny.pt"})
    write(name);
  for (const char* folder : {"a", "b", "c"}) {
    const auto files = find(path(folder));
    ASSERT_FALSE(files) << folder;
    EXPECT_EQ(files.error().code, Code::kInvalidArgument);
    EXPECT_THAT(files.error().message, HasSubstr("name one"));
  }
  EXPECT_THAT(find(path("a")).error().message, HasSubstr("one.nemo' and '" + path("a/two.nemo")));
  EXPECT_TRUE(find(path("a/one.nemo")));
  write("c/model.pt");  // as Whisper's own reader prefers it
  EXPECT_EQ(find(path("c"))->checkpoint, path("c/model.pt"));
}

TEST_F(RecognitionFilesTest, AnInstalledModelMayHaveADotInItsName) {
  write("models/parakeet-0.6b/model.nemo");
  EXPECT_EQ(find("parakeet-0.6b")->checkpoint, path("models/parakeet-0.6b/model.nemo"));
}

TEST_F(RecognitionFilesTest, MissingFilesAreNamed) {
  EXPECT_EQ(find("no-such").error().code, Code::kNotFound);
  EXPECT_THAT(find("no-such").error().message, HasSubstr("syrinx list"));
  EXPECT_EQ(find("./none.nemo").error().code, Code::kNotFound);
  fs::create_directories(path("hollow"));
  EXPECT_THAT(find(path("hollow")).error().message, HasSubstr("syrinx pull whisper-base"));
  EXPECT_THAT(find(path("hollow")).error().message, HasSubstr(".nemo, .safetensors, .ckpt or .pt of a FastConformer"));
  write("x/kokoro.onnx");
  EXPECT_EQ(find(path("x/kokoro.onnx")).error().code, Code::kUnsupported);
  write("y/model.safetensors");
  EXPECT_THAT(find(path("y")).error().message, HasSubstr("config.json' is not there"));
  write("y/config.json", R"({"model_type": "llama"})");
  EXPECT_THAT(find(path("y")).error().message, HasSubstr("'llama'"));
  write("y/config.json", "{");
  EXPECT_EQ(find(path("y")).error().code, Code::kDataLoss);
}

TEST_F(RecognitionFilesTest, ThreadsAreChecked) {
  RecogniserOptions options;
  options.threads = 65;
  EXPECT_EQ(load_recogniser(options).error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace syrinx
