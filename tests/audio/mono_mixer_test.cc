// Channels become their mean, unless they cancel each other.
#include "audio/mono_mixer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace syrinx {
namespace {

constexpr int kRate = 8000;

std::vector<float> mixed(std::span<const float> interleaved, int channels, size_t block_frames,
                         std::optional<int> channel = {}) {
  const SoundLimits limits{.channel = channel};
  const std::string name = "me";
  std::vector<float> out;
  int told = 0;
  const SoundSink sink{.begin = [](int, std::optional<uint64_t>) { return Status(); },
                       .add =
                           [&](std::span<const float> samples) {
                             out.insert(out.end(), samples.begin(), samples.end());
                             return Status();
                           },
                       .channels = [&](int count) { told = count; }};
  MonoMixer mixer(limits, name, sink);
  EXPECT_TRUE(mixer.begin(channels, kRate));
  EXPECT_EQ(told, channels);
  const size_t block = block_frames * static_cast<size_t>(channels);
  for (size_t at = 0; at < interleaved.size(); at += block)
    EXPECT_TRUE(mixer.add(interleaved.subspan(at, std::min(block, interleaved.size() - at))));
  EXPECT_TRUE(mixer.finish());
  EXPECT_EQ(mixer.frames(), interleaved.size() / static_cast<size_t>(channels));
  return out;
}

float wave(size_t i, double hz) {
  return 0.5f * static_cast<float>(std::sin(static_cast<double>(i) * hz * 6.28 / kRate));
}

TEST(MonoMixer, MeanOfTheChannels) {
  std::vector<float> sound, expected;
  for (size_t i = 0; i < 3001; ++i) {
    const float left = wave(i, 200), right = wave(i, 333);
    sound.insert(sound.end(), {left, right});
    expected.push_back((left + right) / 2);
  }
  for (const size_t block : {1, 7, 400, 4096}) EXPECT_EQ(mixed(sound, 2, block), expected) << block;
}

// As from a cable with two wires exchanged, clipped at one end of the scale, a little louder on one side.
TEST(MonoMixer, OppositeChannelsGiveTheLoudest) {
  std::vector<float> sound, expected;
  for (size_t i = 0; i < 3001; ++i) {
    const float sample = wave(i, 200);
    sound.insert(sound.end(), {0.9f * sample, -sample});
    expected.push_back(-sample);
  }
  for (const size_t block : {1, 400, 4096}) EXPECT_EQ(mixed(sound, 2, block), expected) << block;
}

// A voice on one side alone is mixed as ever behind a part that cancels itself.
TEST(MonoMixer, MeanReturnsBehindOppositeChannels) {
  std::vector<float> sound;
  for (size_t i = 0; i < 8000; ++i) {
    const float sample = wave(i, 200);
    if (i < 4000)
      sound.insert(sound.end(), {sample, -sample});
    else if (i < 6000)
      sound.insert(sound.end(), {0, 0});
    else
      sound.insert(sound.end(), {0, sample});
  }
  const std::vector<float> got = mixed(sound, 2, 1000);
  ASSERT_EQ(got.size(), 8000u);
  EXPECT_EQ(got[1001], wave(1001, 200));
  EXPECT_EQ(got[5000], 0.0f);
  EXPECT_EQ(got[7001], wave(7001, 200) / 2);
}

TEST(MonoMixer, OneChannelAlone) {
  std::vector<float> sound, left, right;
  for (size_t i = 0; i < 1001; ++i) {
    left.push_back(wave(i, 200));
    right.push_back(wave(i, 333));
    sound.insert(sound.end(), {left.back(), right.back()});
  }
  EXPECT_EQ(mixed(sound, 2, 100, 0), left);
  EXPECT_EQ(mixed(sound, 2, 100, 1), right);
  EXPECT_EQ(mixed(left, 1, 100, 0), left);
  const SoundLimits limits{.channel = 2};
  const std::string name = "me";
  const SoundSink sink;
  EXPECT_EQ(MonoMixer(limits, name, sink).begin(2, kRate).error().code, Code::kInvalidArgument);
}

TEST(MonoMixer, OneOfEightChannelsIsMixed) {
  std::vector<float> sound(8 * 1000), expected;
  for (size_t i = 0; i < 1000; ++i) {
    sound[8 * i + 3] = wave(i, 200);
    expected.push_back(wave(i, 200) / 8);
  }
  EXPECT_EQ(mixed(sound, 8, 100), expected);
}

}  // namespace
}  // namespace syrinx
