// Floats that are integers, and floats that are nothing.
#include "audio/float_range.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace syrinx {
namespace {

Result<float> scale_of(const std::vector<float>& samples) {
  FloatRange range;
  range.add(samples);
  return range.scale("me");
}

std::vector<float> many(float a, float b) {
  std::vector<float> out;
  for (int i = 0; i < 100; ++i) out.insert(out.end(), {a, b});
  return out;
}

TEST(FloatRange, SoundStaysAsItIs) {
  EXPECT_EQ(scale_of({}).value(), 1);
  EXPECT_EQ(scale_of({0, 0.5f, -1}).value(), 1);
  EXPECT_EQ(scale_of({0, 1, -1}).value(), 1);
  EXPECT_EQ(scale_of(many(0.3f, -3.5f)).value(), 1);  // beyond full scale, as files of floats may be
  std::vector<float> knocks = many(0.1f, 0.2f);
  knocks[50] = -1e30f;
  EXPECT_EQ(scale_of(knocks).value(), 1);
  EXPECT_EQ(scale_of({std::numeric_limits<float>::quiet_NaN(), 0.5f}).value(), 1);
}

TEST(FloatRange, WholeNumbersAreIntegers) {
  EXPECT_EQ(scale_of({0, 3, -2}).value(), 0x1p-15f);  // very quiet ones
  EXPECT_EQ(scale_of({0, 32767, -32768}).value(), 0x1p-15f);
  EXPECT_EQ(scale_of({0, 8388607, -8388608}).value(), 0x1p-23f);
  EXPECT_EQ(scale_of({0, 0x1p31f, -0x1p31f}).value(), 0x1p-31f);
  EXPECT_EQ(scale_of({0, 0x1p40f}).error().code, Code::kDataLoss);
}

TEST(FloatRange, ChangedIntegersAreIntegers) {
  EXPECT_EQ(scale_of(many(0.25f, 20000.5f)).value(), 0x1p-15f);
  EXPECT_EQ(scale_of(many(0.25f, 1.5e9f)).value(), 0x1p-31f);
  EXPECT_EQ(scale_of(many(0.25f, 99.5f)).error().code, Code::kDataLoss);
  EXPECT_EQ(scale_of(many(0.25f, 1e20f)).error().code, Code::kDataLoss);
}

}  // namespace
}  // namespace syrinx
