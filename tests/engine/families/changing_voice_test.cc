// A voice's file that somebody shortens or writes over while the engine reads it.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <utility>

#include "audio/wav.h"
#include "base/watched_pages.h"
#include "engine/families/families.h"
#include "engine/families/find_speech_files.h"
#include "engine/families/pocket_tts/pocket_engine.h"
#include "engine/speech/add_voice_file.h"
#include "tests/base/resize_when_mapped.h"
#include "tests/base/temp_folder.h"

namespace syrinx {
namespace {

const std::string kEnglish = std::string(SYRINX_TEST_DATA) + "/pocket_tts/english";
// As long as voices may be, at a rate that takes work to convert: half a second of reading.
constexpr int kRateHz = 48000;
constexpr size_t kSeconds = 470, kShortBytes = 5000, kLongBytes = kSeconds * kRateHz * 2 + 5000;

// A second of a saw, and silence that takes no room on the disk.
void write_long_voice(const std::string& path) {
  const auto head = wav_header(kRateHz, kSeconds * kRateHz * 2);
  std::string file(reinterpret_cast<const char*>(head.data()), head.size());
  for (int i = 0; i < kRateHz; ++i) file += {'\0', static_cast<char>(i % 100 - 50)};
  write_text(path, file);
  std::filesystem::resize_file(path, head.size() + kSeconds * kRateHz * 2);
}

// In the suite that the stage arm64 leaves out, like those of watched_pages_test.cc.  A truncation that came too late
// is tried again.
TEST(ChangingVoiceDeathTest, OneThatIsAnotherWhileItIsReadIsAnError) {
  catch_missing_pages();
  const TempFolder folder;
  const std::string path = folder.file("voice.wav");
  SpeechEngineOptions options;
  const auto files = find_speech_files(kEnglish, "/nowhere");
  ASSERT_TRUE(files) << files.error().message;
  options.files = *files;
  options.threads = 2;
  const auto engine = load_speech_engine(std::move(options));
  ASSERT_TRUE(engine) << engine.error().message;
  const auto read_changed = [&](size_t bytes, const char* fault, const auto& read) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    Status status;
    do {
      write_long_voice(path);
      const ResizeWhenMapped somebody(path, bytes);
      status = read();
    } while (status && std::chrono::steady_clock::now() < end);
    ASSERT_FALSE(status) << "it was never changed while it was read";
    EXPECT_EQ(status.error().code, Code::kDataLoss);
    EXPECT_NE(status.error().message.find(fault), std::string::npos) << status.error().message;
  };
  for (const auto& [bytes, fault] : {std::pair(kShortBytes, "became shorter"), std::pair(kLongBytes, "was written")}) {
    read_changed(bytes, fault, [&]() -> Status {
      auto exported = (*engine)->export_voice(path);
      if (!exported) return tl::unexpected(exported.error());
      return {};
    });
    read_changed(bytes, fault, [&] { return add_voice_file(**engine, "me", path); });
    SpeakOptions speak;
    speak.voice = "me";
    const auto started = (*engine)->start(speak);
    ASSERT_FALSE(started) << "what was changed is no voice";
    EXPECT_EQ(started.error().code, Code::kNotFound);
  }
}

}  // namespace
}  // namespace syrinx
