#include "base/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace syrinx {
namespace {

using Words = std::array<uint32_t, 4>;

// The published vectors of the Random123 distribution (tests/kat_vectors, "philox4x32 10").
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Rng, WordsComeInTheDocumentedOrder) {
  const uint64_t seed = 0x0123456789abcdef, stream = 0xfedcba9876543210;
  Rng rng(seed, stream);
  for (uint32_t block = 0; block < 3; ++block) {
    for (uint32_t word : philox4x32({block, 0, 0x76543210, 0xfedcba98}, {0x89abcdef, 0x01234567})) {
      EXPECT_EQ(rng.next_u32(), word);
    }
  }
}

TEST(Rng, UniformTakesTheUpper24Bits) {
  Rng words(7), values(7);
  for (int i = 0; i < 1000; ++i) {
    const float value = values.uniform();
    EXPECT_EQ(value, static_cast<float>(words.next_u32() >> 8) / 16777216.0f);
    EXPECT_GE(value, 0.0f);
    EXPECT_LT(value, 1.0f);
  }
}

TEST(Rng, NormalUsesTwoWordsForTwoValuesAndKeepsTheSecond) {
  Rng words(11), values(11);
  const double u = (words.next_u32() + 1.0) / 4294967296.0, v = (words.next_u32() + 1.0) / 4294967296.0;
  const double radius = std::sqrt(-2.0 * std::log(u)), angle = 2.0 * std::acos(-1.0) * v;
  EXPECT_FLOAT_EQ(values.normal(), static_cast<float>(radius * std::cos(angle)));
  const float between = values.uniform();
  EXPECT_EQ(between, static_cast<float>(words.next_u32() >> 8) / 16777216.0f);
  EXPECT_FLOAT_EQ(values.normal(), static_cast<float>(radius * std::sin(angle)));
}

TEST(Rng, FillEqualsCalls) {
  Rng a(3), b(3);
  std::vector<float> uniform(17), normal(17);
  a.fill_uniform(uniform);
  a.fill_normal(normal);
  for (float value : uniform) EXPECT_EQ(value, b.uniform());
  for (float value : normal) EXPECT_EQ(value, b.normal());
}

TEST(Rng, SeedsAndStreamsDiffer) {
  std::set<uint32_t> first;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    for (uint64_t stream = 0; stream < 50; ++stream) first.insert(Rng(seed, stream).next_u32());
  }
  EXPECT_GE(first.size(), 2499u);  // one chance collision in 2^32 allowed
}

TEST(Rng, CopyKeepsItsPlace) {
  Rng a(5);
  a.normal();
  a.next_u32();
  Rng b = a;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(a.normal(), b.normal());
}

TEST(Rng, Moments) {
  constexpr int kDraws = 400000;
  Rng rng(2024);
  double mean = 0, square = 0, cube = 0, fourth = 0, uniform = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = rng.normal();
    mean += x;
    square += x * x;
    cube += x * x * x;
    fourth += x * x * x * x;
  }
  for (int i = 0; i < kDraws; ++i) uniform += rng.uniform();
  // Five standard errors of each estimate.
  const double root = 5.0 / std::sqrt(static_cast<double>(kDraws));
  EXPECT_NEAR(mean / kDraws, 0.0, root);
  EXPECT_NEAR(square / kDraws, 1.0, root * std::sqrt(2.0));
  EXPECT_NEAR(cube / kDraws, 0.0, root * std::sqrt(15.0));
  EXPECT_NEAR(fourth / kDraws, 3.0, root * std::sqrt(96.0));
  EXPECT_NEAR(uniform / kDraws, 0.5, root * std::sqrt(1.0 / 12));
}

}  // namespace
}  // namespace syrinx
