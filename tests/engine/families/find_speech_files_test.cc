#include "engine/families/find_speech_files.h"
#include "engine/families/kokoro/lexicon_files.h"
#include "engine/speech/speech_family.h"
#include "engine/speech/speech_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace syrinx {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class SpeechFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("speech_files" + std::to_string(getpid()));
    touch("models/kokoro/kokoro-v1.0.int8.onnx");
    touch("models/kokoro/voices/af_heart.bin");
    touch("models/english-g2p/us_gold.json");
    touch("models/english-g2p/us_silver.json");
    touch("elsewhere/kokoro-v1_0.pth");
    fs::create_directories(root_ / "models/hollow");
  }
  void TearDown() override { fs::remove_all(root_); }
  void touch(const std::string& name) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << "x";
  }
  Result<SpeechFiles> find(const std::string& model) { return find_speech_files(model, (root_ / "models").string()); }
  std::string path(const std::string& name) const { return (root_ / name).string(); }

  fs::path root_;
};

TEST_F(SpeechFilesTest, FindsAnInstalledModel) {
  for (const char* name : {"", "kokoro"}) {
    const auto files = find(name);
    ASSERT_TRUE(files) << files.error().message;
    EXPECT_EQ(files->name, "kokoro");
    EXPECT_EQ(files->checkpoint, path("models/kokoro/kokoro-v1.0.int8.onnx"));
    EXPECT_EQ(files->voices, path("models/kokoro/voices"));
    EXPECT_EQ(files->lexicon, path("models/english-g2p"));
  }
}

TEST_F(SpeechFilesTest, FindsAModelByItsAlias) {
  for (const char* name : {"hexgrad/Kokoro-82M", "kokoro-v1.0"}) {
    const auto files = find(name);
    ASSERT_TRUE(files) << files.error().message;
    EXPECT_EQ(files->name, "kokoro");
    EXPECT_EQ(files->checkpoint, path("models/kokoro/kokoro-v1.0.int8.onnx"));
    EXPECT_EQ(packed_folder({.data = "/d", .cache = "/c"}, *files), "/c/packed/kokoro");
    EXPECT_EQ(find_reader_files(name, path("models"))->name, "kokoro");
  }
  fs::remove_all(root_ / "models/kokoro");
  EXPECT_EQ(find("hexgrad/Kokoro-82M").error().message,
            "model 'kokoro' is not installed; fetch it with `syrinx pull kokoro`");
  EXPECT_THAT(find("kyutai/pocket-tts").error().message, HasSubstr("`syrinx pull pocket-tts:english`"));
  EXPECT_THAT(find("hexgrad/Kokoro").error().message, HasSubstr("no file or folder 'hexgrad/Kokoro'"));
}

TEST_F(SpeechFilesTest, FindsAFileAndAFolder) {
  for (const char* place : {"elsewhere", "elsewhere/kokoro-v1_0.pth"}) {
    const auto files = find(path(place));
    ASSERT_TRUE(files) << files.error().message;
    EXPECT_EQ(files->checkpoint, path("elsewhere/kokoro-v1_0.pth"));
    EXPECT_EQ(files->lexicon, path("models/english-g2p"));
  }
  touch("g2p/us_gold.json");
  EXPECT_EQ(find(path("elsewhere"))->lexicon, path("g2p"));
}

TEST_F(SpeechFilesTest, AsksWhichOfSeveralIsMeant) {
  touch("elsewhere/another.pth");
  const auto files = find(path("elsewhere"));
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().code, Code::kInvalidArgument);
  EXPECT_THAT(files.error().message, HasSubstr("another.pth' and '" + path("elsewhere/kokoro-v1_0.pth")));
  EXPECT_TRUE(find(path("elsewhere/another.pth")));
  touch("elsewhere/kokoro.onnx");
  EXPECT_EQ(find(path("elsewhere"))->checkpoint, path("elsewhere/kokoro.onnx"));
  touch("elsewhere/kokoro.int8.onnx");
  EXPECT_EQ(find(path("elsewhere")).error().code, Code::kInvalidArgument);
}

TEST_F(SpeechFilesTest, MissingFilesAreNamed) {
  EXPECT_THAT(find("unheard").error().message, HasSubstr("syrinx list"));
  EXPECT_THAT(find("unheard").error().message, Not(HasSubstr("syrinx pull")));
  fs::remove_all(root_ / "models/kokoro");
  EXPECT_THAT(find("").error().message, HasSubstr("syrinx pull kokoro"));
  EXPECT_EQ(find("./no/such").error().code, Code::kNotFound);
  EXPECT_THAT(find("hollow").error().message, HasSubstr("holds no checkpoint"));
  touch("models/kokoro/kokoro-v1.0.int8.onnx");
  fs::remove_all(root_ / "models/english-g2p");
  EXPECT_EQ(find("kokoro")->lexicon, "");
}

TEST_F(SpeechFilesTest, FrontEndNeedsNoCheckpoint) {
  const auto find_reader = [this](const std::string& model) {
    return find_reader_files(model, (root_ / "models").string());
  };
  EXPECT_EQ(find_reader("kokoro")->lexicon, path("models/english-g2p"));
  EXPECT_EQ(find_reader(path("elsewhere/kokoro-v1_0.pth"))->lexicon, path("models/english-g2p"));
  touch("models/pocket-tts/config.yaml");
  EXPECT_EQ(find_reader("pocket-tts").error().code, Code::kUnsupported);
  EXPECT_THAT(find_reader("pocket-tts").error().message, HasSubstr("as it is written"));
  fs::remove_all(root_ / "models/kokoro");
  for (const char* name : {"", "kokoro"}) {
    const auto files = find_reader(name);
    ASSERT_TRUE(files) << files.error().message;
    EXPECT_EQ(files->lexicon, path("models/english-g2p"));
    EXPECT_EQ(files->family->kind, "kokoro");
  }
  EXPECT_EQ(find_reader("unheard").error().code, Code::kNotFound);
  EXPECT_EQ(find_reader("whisper-base").error().code, Code::kNotFound);
  EXPECT_EQ(find_reader("./no/such").error().code, Code::kNotFound);
  EXPECT_EQ(find_reader("hf://owner/repository/kokoro.onnx").error().code, Code::kInvalidArgument);
}

TEST_F(SpeechFilesTest, LeavesOutLexiconPartsThatAreNotThere) {
  const g2p::G2pFiles files = lexicon_files(path("models/english-g2p"), false);
  EXPECT_EQ(files.gold, path("models/english-g2p/us_gold.json"));
  EXPECT_EQ(files.silver, path("models/english-g2p/us_silver.json"));
  EXPECT_EQ(files.fallback, "");
  EXPECT_TRUE(lexicon_files(path("models/english-g2p"), true).gold.ends_with("gb_gold.json"));
}

}  // namespace
}  // namespace syrinx
