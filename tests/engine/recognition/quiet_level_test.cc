#include "engine/recognition/quiet_level.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace syrinx {
namespace {

std::vector<float> tone(float peak, size_t samples) {
  std::vector<float> out(samples);
  for (size_t i = 0; i < samples; ++i) out[i] = peak * static_cast<float>(std::sin(0.1 * static_cast<double>(i)));
  return out;
}

TEST(QuietLevel, NormalLevelsStay) {
  for (const float peak : {1.0f, 0.1f, 0.02f, 0.0001f, 0.0f}) EXPECT_EQ(quiet_gain(tone(peak, 16000)), 1) << peak;
  EXPECT_EQ(quiet_gain({}), 1);
  std::vector<float> spoken_once = tone(0.001f, 160'000);  // a quiet room, and a short word
  const std::vector<float> word = tone(0.1f, 4800);
  std::copy(word.begin(), word.end(), spoken_once.begin() + 80'000);
  EXPECT_EQ(quiet_gain(spoken_once), 1);
}

TEST(QuietLevel, QuietRecordingsAreRaised) {
  for (const float peak : {0.0045f, 0.0018f, 0.0003f}) EXPECT_NEAR(quiet_gain(tone(peak, 16000)) * peak, 0.316, 0.002);
  std::vector<float> knocked = tone(0.002f, 32000);
  knocked[9000] = 1;
  knocked[20000] = std::nanf("");
  EXPECT_NEAR(quiet_gain(knocked), 158, 1);
}

}  // namespace
}  // namespace syrinx
