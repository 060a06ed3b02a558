#include "text/upper_case.h"

#include <gtest/gtest.h>

namespace syrinx::text {
namespace {

TEST(UpperCase, MapsFully) {
  EXPECT_EQ(upper_case(U'a'), U"A");
  EXPECT_EQ(upper_case(U'A'), U"A");
  EXPECT_EQ(upper_case(U'é'), U"É");
  EXPECT_EQ(upper_case(U'1'), U"1");
  EXPECT_EQ(upper_case(U'你'), U"你");
  EXPECT_EQ(upper_case(U'ß'), U"SS");
  EXPECT_EQ(upper_case(U'ŉ'), U"ʼN");
  EXPECT_EQ(upper_case(U'ﬃ'), U"FFI");
  EXPECT_EQ(upper_case(U'ﬗ'), U"ՄԽ");
  EXPECT_EQ(upper_case(U'ΐ'), U"\u0399\u0308\u0301");
  EXPECT_EQ(upper_case(U'ᾷ'), U"\u0391\u0342\u0399");
  EXPECT_EQ(upper_case(0x1F80), U"\u1F08\u0399");
  EXPECT_EQ(upper_case(0x1F8F), U"\u1F0F\u0399");
  EXPECT_EQ(upper_case(0x1F9A), U"\u1F2A\u0399");
  EXPECT_EQ(upper_case(0x1FAF), U"\u1F6F\u0399");
  EXPECT_EQ(upper_case(U'ǅ'), U"Ǆ");
  EXPECT_EQ(upper_case(0x10FFFF), U"\U0010FFFF");
}

}  // namespace
}  // namespace syrinx::text
