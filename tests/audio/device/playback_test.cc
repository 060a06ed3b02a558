#include "audio/device/playback.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/audio/sound_tools.h"
#include "tests/base/temp_folder.h"

namespace syrinx {
namespace {

// ALSA reads its set-up from a file of ours: devices that write to a file or nowhere, and always in no time.
class PlaybackTest : public testing::Test {
 protected:
  void use_sound_system(const std::string& set_up) {
    write_text(folder_.file("asoundrc"), set_up);
    setenv("ALSA_CONFIG_PATH", folder_.file("asoundrc").c_str(), 1);
    setenv("JACK_NO_START_SERVER", "1", 1);
  }
  std::string recording() const {
    return "pcm.nowhere { type null }\npcm.!default { type file file \"" + folder_.file("out.raw") +
           "\" format raw slave.pcm nowhere }\n";
  }
  TempFolder folder_;
  const std::atomic<bool> never_{false};
};

TEST_F(PlaybackTest, NoLoudspeakerIsASentenceAndNoNoise) {
  use_sound_system("pcm.!default { type hw card 99 }\n");
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  const auto playback = Playback::open({});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  ASSERT_FALSE(playback);
  EXPECT_EQ(playback.error().code, Code::kUnavailable);
  EXPECT_NE(playback.error().message.find("no loudspeaker"), std::string::npos) << playback.error().message;
}

TEST_F(PlaybackTest, TheDeviceGetsTheSamples) {
  use_sound_system(recording());
  const auto sound = voice_like(24000, 24000);
  testing::internal::CaptureStderr();
  {
    auto playback = Playback::open({});
    ASSERT_TRUE(playback) << playback.error().message;
    EXPECT_TRUE((*playback)->play(sound, never_));
    EXPECT_TRUE((*playback)->drain(never_));
    EXPECT_EQ((*playback)->queued_seconds(), 0.0);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  const std::string raw = read_text(folder_.file("out.raw"));
  std::vector<float> played(raw.size() / sizeof(float));
  std::memcpy(played.data(), raw.data(), played.size() * sizeof(float));
  // Silence goes before and after; the sound itself arrives whole, bit by bit, unless the queue ran dry in between.
  const auto found = std::search(played.begin(), played.end(), sound.begin(), sound.end());
  EXPECT_NE(found, played.end());
}

TEST_F(PlaybackTest, PushTakesAsManyAsFit) {
  use_sound_system(recording());
  auto playback = Playback::open({.rate_hz = 24000, .queue_seconds = 0.01, .device = "default"});
  ASSERT_TRUE(playback) << playback.error().message;
  const auto sound = voice_like(24000, 24000);
  EXPECT_LE((*playback)->push(sound), 256u);
  EXPECT_TRUE((*playback)->play(sound, never_));  // many times the queue
  EXPECT_TRUE((*playback)->drain(never_));
}

TEST_F(PlaybackTest, CancelStopsAtOnce) {
  use_sound_system(recording());
  auto playback = Playback::open({.rate_hz = 24000, .queue_seconds = 0.01});
  ASSERT_TRUE(playback) << playback.error().message;
  const std::atomic<bool> cancelled{true};
  const auto status = (*playback)->play(voice_like(24000, 24000), cancelled);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kCancelled);
}

TEST_F(PlaybackTest, UnknownDeviceListsTheKnown) {
  use_sound_system(recording());
  const auto playback = Playback::open({.device = "gramophone"});
  ASSERT_FALSE(playback);
  EXPECT_EQ(playback.error().code, Code::kUnavailable);
  EXPECT_NE(playback.error().message.find("'gramophone'; this machine has: nowhere, default"), std::string::npos)
      << playback.error().message;
}

}  // namespace
}  // namespace syrinx
