#include "audio/stream_resampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "audio/resample.h"
#include "sound_tools.h"

namespace syrinx {
namespace {

std::vector<float> in_blocks(StreamResampler& resampler, std::span<const float> sound, size_t block) {
  std::vector<float> out;
  for (size_t at = 0; at < sound.size(); at += block)
    resampler.push(sound.subspan(at, std::min(block, sound.size() - at)), out);
  resampler.finish(out);
  return out;
}

TEST(StreamResampler, BlocksGiveTheWholeSoundBitForBit) {
  for (const int from : {8000, 11025, 16000, 22050, 24000, 44100, 48000, 96000, 24001}) {
    const std::vector<float> sound = voice_like(9000, from);
    const auto whole = resample(sound, from, 16000);
    ASSERT_TRUE(whole);
    auto resampler = StreamResampler::create(from, 16000);
    ASSERT_TRUE(resampler);
    for (const size_t block : {size_t{1}, size_t{7}, size_t{160}, size_t{4096}, sound.size()}) {
      EXPECT_EQ(in_blocks(*resampler, sound, block), *whole) << from << " Hz in blocks of " << block;
      resampler->reset();
    }
    // Blocks of any sizes, empty ones among them.
    std::mt19937 random(5);
    std::vector<float> out;
    for (size_t at = 0; at < sound.size();) {
      const size_t count = std::min<size_t>(random() % 700, sound.size() - at);
      resampler->push(std::span(sound).subspan(at, count), out);
      at += count;
    }
    resampler->finish(out);
    EXPECT_EQ(out, *whole) << from;
  }
}

TEST(StreamResampler, ShortSoundsAndNone) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{2}, size_t{60}}) {
    const std::vector<float> sound(size, 0.5f);
    auto resampler = StreamResampler::create(44100, 16000);
    ASSERT_TRUE(resampler);
    EXPECT_EQ(in_blocks(*resampler, sound, 1).size(), (size * 160 + 440) / 441);
  }
}

TEST(StreamResampler, TellsSoonAndKeepsLittle) {
  auto resampler = StreamResampler::create(48000, 16000);
  ASSERT_TRUE(resampler);
  const std::vector<float> block(480, 0.1f);
  std::vector<float> out;
  for (int i = 1; i <= 1000; ++i) {
    resampler->push(block, out);
    // Ten periods of the lower rate, and the one in the middle.
    EXPECT_GE(out.size() + 11, static_cast<size_t>(i) * 160);
  }
}

TEST(StreamResampler, RefusesRatesBeyondItsLimits) {
  for (const auto& [from, to] : {std::pair(999, 16000), {16000, 384001}, {0, 16000}, {-8000, 16000}})
    EXPECT_EQ(StreamResampler::create(from, to).error().code, Code::kLimitExceeded);
}

}  // namespace
}  // namespace syrinx
