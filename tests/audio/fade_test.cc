#include "audio/fade.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace syrinx {
namespace {

TEST(Fade, RisesAndFallsMonotonically) {
  for (int rate : {22050, 24000, 48000}) {
    std::vector<float> sound(static_cast<size_t>(rate / 10), 1.0f);
    fade_in(sound, rate);
    fade_out(sound, rate);
    const size_t n = static_cast<size_t>(0.005 * rate + 0.5);
    EXPECT_EQ(sound.front(), 0.0f);
    EXPECT_EQ(sound.back(), 0.0f);
    for (size_t i = 1; i < n; ++i) {
      EXPECT_GT(sound[i], sound[i - 1]);
      EXPECT_EQ(sound[sound.size() - 1 - i], sound[i]);
    }
    for (size_t i = n; i + n < sound.size(); ++i) ASSERT_EQ(sound[i], 1.0f);
  }
}

TEST(Fade, ShortAndEmptySounds) {
  std::vector<float> none, one = {1.0f}, three = {1.0f, 1.0f, 1.0f};
  fade_in(none, 24000);
  fade_out(none, 24000);
  fade_in(one, 24000);
  EXPECT_EQ(one[0], 0.0f);
  fade_out(three, 24000);
  EXPECT_NEAR(three[0], 0.75f, 1e-6f);
  EXPECT_NEAR(three[1], 0.25f, 1e-6f);
  EXPECT_EQ(three[2], 0.0f);
  std::vector<float> untouched(10, 1.0f);
  fade_in(untouched, 24000, 0);
  EXPECT_EQ(untouched[0], 1.0f);
}

// 0.4 s of faint noise, 0.3 s of sound, 0.5 s of faint noise, as the model makes it.
std::vector<float> piece(int rate) {
  std::vector<float> sound(static_cast<size_t>(1.2 * rate));
  for (size_t i = 0; i < sound.size(); ++i) {
    const double t = static_cast<double>(i) / rate;
    const double loud = t >= 0.4 && t < 0.7 ? 0.3 : 0.0005;
    sound[i] = static_cast<float>(loud * std::sin(2 * M_PI * 200 * t + 1));
  }
  return sound;
}

TEST(Trim, FindsTheSoundWithinAWindow) {
  for (int rate : {22050, 24000}) {
    const SampleRange range = find_sound(piece(rate), rate, -50);
    EXPECT_NEAR(static_cast<double>(range.begin) / rate, 0.4, 0.005);
    EXPECT_NEAR(static_cast<double>(range.end) / rate, 0.7, 0.005);
  }
}

TEST(Trim, KeepsTheAskedSilenceAndFades) {
  const int rate = 24000;
  auto sound = piece(rate);
  const auto before = sound;
  const auto kept = trim_silence(sound, rate, {.quiet_db = -50, .keep_before_ms = 50, .keep_after_ms = 100});
  EXPECT_NEAR(static_cast<double>(kept.size()) / rate, 0.3 + 0.15, 0.011);
  EXPECT_EQ(kept.front(), 0.0f);
  EXPECT_EQ(kept.back(), 0.0f);
  const size_t offset = static_cast<size_t>(kept.data() - sound.data());
  for (size_t i = 120; i + 120 < kept.size(); ++i) ASSERT_EQ(kept[i], before[offset + i]);
}

TEST(Trim, LessSilenceThanAskedIsAllKept) {
  const int rate = 24000;
  auto sound = piece(rate);
  const size_t size = sound.size();
  EXPECT_EQ(trim_silence(sound, rate, {.keep_before_ms = 1000, .keep_after_ms = 1000}).size(), size);
}

TEST(Trim, AllQuietIsEmpty) {
  std::vector<float> quiet(24000, 0.001f), none;
  EXPECT_TRUE(trim_silence(quiet, 24000, {}).empty());
  EXPECT_TRUE(trim_silence(none, 24000, {}).empty());
  EXPECT_EQ(find_sound(quiet, 24000, -50), SampleRange{});
  EXPECT_EQ(find_sound(quiet, 24000, -70).size(), quiet.size());
}

}  // namespace
}  // namespace syrinx
