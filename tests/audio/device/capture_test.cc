#include "audio/device/capture.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "tests/audio/sound_tools.h"
#include "tests/base/temp_folder.h"

namespace syrinx {
namespace {

// ALSA reads its set-up from a file of ours: microphones that read a file, or give silence, in no time.
class CaptureTest : public testing::Test {
 protected:
  void use_sound_system(const std::string& set_up) {
    write_text(folder_.file("asoundrc"), set_up);
    setenv("ALSA_CONFIG_PATH", folder_.file("asoundrc").c_str(), 1);
    setenv("JACK_NO_START_SERVER", "1", 1);
  }
  // A microphone that hears what is in this file.
  std::string hearing(const std::string& file) const {
    return "pcm.nowhere { type null }\npcm.!default { type file file \"/dev/null\" infile \"" + file +
           "\" format raw slave.pcm nowhere }\n";
  }
  TempFolder folder_;
  const std::atomic<bool> never_{false};
};

TEST_F(CaptureTest, NoMicrophoneIsASentenceAndNoNoise) {
  use_sound_system("pcm.!default { type hw card 99 }\n");
  testing::internal::CaptureStderr();
  const auto capture = Capture::open({});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  ASSERT_FALSE(capture);
  EXPECT_EQ(capture.error().code, Code::kUnavailable);
  EXPECT_NE(capture.error().message.find("no microphone"), std::string::npos) << capture.error().message;
}

TEST_F(CaptureTest, ReturnsTheDevicesSamples) {
  const std::vector<float> sound = voice_like(16000, 16000);
  std::string raw(sound.size() * sizeof(float), '\0');
  std::memcpy(raw.data(), sound.data(), raw.size());
  write_text(folder_.file("in.raw"), raw);
  use_sound_system(hearing(folder_.file("in.raw")));
  testing::internal::CaptureStderr();
  std::vector<float> heard;
  {
    auto capture = Capture::open({.rate_hz = 16000, .queue_seconds = 60});
    ASSERT_TRUE(capture) << capture.error().message;
    EXPECT_EQ((*capture)->rate_hz(), 16000);
    EXPECT_EQ((*capture)->device(), "default");
    std::vector<float> block(1000);
    while (heard.size() < sound.size()) {
      const auto got = (*capture)->read(block, never_);
      ASSERT_TRUE(got) << got.error().message;
      ASSERT_GE(*got, 1u);
      heard.insert(heard.end(), block.begin(), block.begin() + static_cast<std::ptrdiff_t>(*got));
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  heard.resize(sound.size());
  EXPECT_EQ(heard, sound);
}

TEST_F(CaptureTest, CancelStopsAtOnce) {
  use_sound_system("pcm.!default { type null }\n");
  auto capture = Capture::open({});
  ASSERT_TRUE(capture) << capture.error().message;
  const std::atomic<bool> cancelled{true};
  std::vector<float> block(100);
  EXPECT_EQ((*capture)->read(block, cancelled).error().code, Code::kCancelled);
}

// A pipe whose writer falls silent is what a microphone is that has been pulled out.
TEST_F(CaptureTest, AMicrophoneThatVanishesIsASentence) {
  const std::string pipe = folder_.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::fstream writer(pipe, std::ios::in | std::ios::out | std::ios::binary);
  const std::vector<float> sound(2000, 0.25f);
  writer.write(reinterpret_cast<const char*>(sound.data()), static_cast<std::streamsize>(sound.size() * sizeof(float)));
  writer.flush();
  use_sound_system(hearing(pipe));
  auto capture = Capture::open({.queue_seconds = 60, .stall_ms = 300});
  ASSERT_TRUE(capture) << capture.error().message;
  std::vector<float> block(1 << 20);
  Result<size_t> got = 0;
  for (size_t i = 0; i < 1000 && got; ++i) got = (*capture)->read(block, never_);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::kIo);
  EXPECT_NE(got.error().message.find("stopped giving sound"), std::string::npos) << got.error().message;
}

TEST_F(CaptureTest, UnknownDeviceListsTheKnown) {
  use_sound_system("pcm.nowhere { type null }\npcm.!default { type null }\n");
  const auto capture = Capture::open({.device = "gramophone"});
  ASSERT_FALSE(capture);
  EXPECT_EQ(capture.error().code, Code::kUnavailable);
  EXPECT_NE(capture.error().message.find("sound input 'gramophone'; this machine has: "), std::string::npos)
      << capture.error().message;
}

}  // namespace
}  // namespace syrinx
