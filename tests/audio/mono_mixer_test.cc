// Channels become their mean, unless they cancel each other.
#include "audio/mono_mixer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"

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

struct Steps {
  size_t mean_windows = 0, changes = 0;
  double largest = 0, largest_at_change = 0;
};

// Between the mean and one channel, in windows of 50 ms.
Steps steps_of(std::span<const float> sound, std::span<const float> got) {
  constexpr size_t kWindow = kRate / 20;
  Steps steps;
  bool was_mean = false;
  for (size_t begin = 0; begin + kWindow <= got.size(); begin += kWindow) {
    const size_t last = begin + kWindow - 1;  // behind a change
    const float left = sound[2 * last], right = sound[2 * last + 1];
    const bool are_alike = std::abs(left - right) < 2e-3f;
    const bool is_mean = are_alike ? was_mean : std::abs(got[last] - (left + right) / 2) < 1e-6f;
    const bool is_change = begin > 0 && is_mean != was_mean;
    if (is_mean) ++steps.mean_windows;
    if (is_change) ++steps.changes;
    for (size_t i = std::max<size_t>(begin, 1); i <= last; ++i) {
      double& largest = is_change && i < begin + kRate / 100 ? steps.largest_at_change : steps.largest;
      largest = std::max<double>(largest, std::abs(got[i] - got[i - 1]));
    }
    was_mean = is_mean;
  }
  return steps;
}

// A voice in opposite channels, with pauses, and a noise that both have.
TEST(MonoMixer, CommonNoiseChangesNothing) {
  for (const float noise : {0.01f, 0.04f, 0.1f}) {
    Rng rng(3);
    std::vector<float> sound;
    double common = 0;
    for (size_t i = 0; i < 20 * kRate; ++i) {
      const double t = static_cast<double>(i) / kRate;
      const double loudness = 0.02 + std::max(0.0, std::sin(6.28 * 0.9 * t));  // pauses of half a second
      common += 0.3 * (noise * rng.normal() - common);
      const float both = static_cast<float>(common), voice = static_cast<float>(loudness) * wave(i, 200);
      sound.insert(sound.end(), {both + voice, both - voice});
    }
    const Steps steps = steps_of(sound, mixed(sound, 2, 1000));
    EXPECT_LE(steps.changes, 1u) << noise;
    EXPECT_LE(steps.mean_windows, 6u) << noise;  // before the voice
  }
}

TEST(MonoMixer, ChangesFade) {
  std::vector<float> sound;
  for (size_t i = 0; i < 32 * kRate; ++i) {  // a hum that comes and goes four times
    const float loudness = 1 + 0.9f * static_cast<float>(std::cos(6.2832 / 8 * static_cast<double>(i) / kRate));
    const float both = loudness * wave(i, 50), voice = 0.8f * wave(i, 200);
    sound.insert(sound.end(), {both + voice, both - voice});
  }
  const Steps steps = steps_of(sound, mixed(sound, 2, 1000));
  EXPECT_EQ(steps.changes, 8u);
  EXPECT_GT(steps.largest_at_change, 0.01);
  EXPECT_LE(steps.largest_at_change, 1.1 * steps.largest);
}

// Where the channel that was taken falls silent, and the other one speaks on, no second is lost.
TEST(MonoMixer, OtherChannelIsHeardAtOnce) {
  std::vector<float> sound;
  for (size_t i = 0; i < 8000; ++i) sound.insert(sound.end(), {i < 4000 ? -wave(i, 200) : 0.0f, wave(i, 200)});
  const std::vector<float> got = mixed(sound, 2, 1000);
  ASSERT_EQ(got.size(), 8000u);
  for (size_t i = 4000 + kRate / 100; i < 8000; ++i) ASSERT_EQ(got[i], wave(i, 200) / 2) << i;
}

// It ends the window, and costs a channel.
TEST(MonoMixer, SilenceIsOneChannel) {
  std::vector<size_t> blocks;
  double sum = 0;
  const SoundSink sink{.begin = [](int, std::optional<uint64_t>) { return Status(); },
                       .add =
                           [&](std::span<const float> samples) {
                             blocks.push_back(samples.size());
                             for (const float sample : samples) sum += sample;
                             return Status();
                           }};
  const SoundLimits limits{.max_seconds = 10};
  const std::string name = "me";
  MonoMixer mixer(limits, name, sink);
  ASSERT_TRUE(mixer.begin(8, kRate));
  ASSERT_TRUE(mixer.add(std::vector<float>(8 * 100, 0.5f)));
  ASSERT_TRUE(mixer.silence(20000));
  EXPECT_EQ(blocks, (std::vector<size_t>{100, 16384, 3616}));
  EXPECT_EQ(sum, 50);
  EXPECT_EQ(mixer.frames(), 20100u);
  EXPECT_EQ(mixer.silence(uint64_t{1} << 60).error().code, Code::kLimitExceeded);
  EXPECT_TRUE(mixer.has_refused());
}

TEST(MonoMixer, EachChannelCountsWhereAsked) {
  const SoundLimits limits{.max_seconds = 10, .each_channel_counts = true};
  const std::string name = "me";
  const SoundSink sink{.begin = [](int, std::optional<uint64_t>) { return Status(); },
                       .add = [](std::span<const float>) { return Status(); }};
  EXPECT_TRUE(MonoMixer(limits, name, sink).begin(2, kRate, 5 * kRate));
  const Status longer = MonoMixer(limits, name, sink).begin(2, kRate, 5 * kRate + 1);
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().code, Code::kLimitExceeded);
  EXPECT_EQ(longer.error().message, "'me' has 5.0 s of sound in each of 2 channels; at most 10 s are read");
  MonoMixer mixer(limits, name, sink);
  ASSERT_TRUE(mixer.begin(4, kRate));
  EXPECT_TRUE(mixer.add(std::vector<float>(10 * kRate)));
  EXPECT_EQ(mixer.add(std::vector<float>(4)).error().code, Code::kLimitExceeded);
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
