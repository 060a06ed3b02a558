#include "text/speech/numbers.h"

#include <gtest/gtest.h>

namespace syrinx::text {
namespace {

TEST(Numbers, Cardinals) {
  EXPECT_EQ(cardinal("0"), "zero");
  EXPECT_EQ(cardinal("000"), "zero");
  EXPECT_EQ(cardinal("13"), "thirteen");
  EXPECT_EQ(cardinal("40"), "forty");
  EXPECT_EQ(cardinal("99"), "ninety nine");
  EXPECT_EQ(cardinal("100"), "one hundred");
  EXPECT_EQ(cardinal("305"), "three hundred five");
  EXPECT_EQ(cardinal("305", {true}), "three hundred and five");
  EXPECT_EQ(cardinal("1001", {true}), "one thousand and one");
  EXPECT_EQ(cardinal("1000000"), "one million");
  EXPECT_EQ(cardinal("12345678"), "twelve million three hundred forty five thousand six hundred seventy eight");
  EXPECT_EQ(cardinal("999999999999999999").substr(0, 33), "nine hundred ninety nine quadrill");
  EXPECT_EQ(cardinal("1234567890123456789"), one_by_one("1234567890123456789"));
}

TEST(Numbers, Ordinals) {
  EXPECT_EQ(ordinal("1"), "first");
  EXPECT_EQ(ordinal("12"), "twelfth");
  EXPECT_EQ(ordinal("20"), "twentieth");
  EXPECT_EQ(ordinal("21"), "twenty first");
  EXPECT_EQ(ordinal("103"), "one hundred third");
  EXPECT_EQ(ordinal("1000"), "one thousandth");
}

TEST(Numbers, Years) {
  EXPECT_EQ(year("1984"), "nineteen eighty four");
  EXPECT_EQ(year("1905"), "nineteen oh five");
  EXPECT_EQ(year("1900"), "nineteen hundred");
  EXPECT_EQ(year("2000"), "two thousand");
  EXPECT_EQ(year("2005"), "two thousand five");
  EXPECT_EQ(year("2010"), "twenty ten");
  EXPECT_EQ(year("1066"), "ten sixty six");
  EXPECT_EQ(year("476"), "four hundred seventy six");
}

TEST(Numbers, InNames) {
  EXPECT_EQ(in_a_name("320"), "three twenty");
  EXPECT_EQ(in_a_name("205"), "two oh five");
  EXPECT_EQ(in_a_name("500"), "five hundred");
  EXPECT_EQ(in_a_name("16"), "sixteen");
  EXPECT_EQ(in_a_name("007"), "zero zero seven");
  EXPECT_EQ(in_a_name("12345"), "one two three four five");
}

TEST(Numbers, Plurals) {
  EXPECT_EQ(plural("nineteen ninety"), "nineteen nineties");
  EXPECT_EQ(plural("six"), "sixes");
  EXPECT_EQ(plural("seven"), "sevens");
}

TEST(Numbers, RomanNumerals) {
  EXPECT_EQ(roman_value("I"), 1);
  EXPECT_EQ(roman_value("IV"), 4);
  EXPECT_EQ(roman_value("VIII"), 8);
  EXPECT_EQ(roman_value("XIV"), 14);
  EXPECT_EQ(roman_value("XL"), 40);
  EXPECT_EQ(roman_value("LVIII"), 58);
  for (const char* wrong : {"", "IIII", "VX", "IC", "MIX", "ABC", "DC"}) EXPECT_EQ(roman_value(wrong), 0) << wrong;
}

TEST(Numbers, Small) {
  EXPECT_EQ(significant("007"), "7");
  EXPECT_EQ(significant("00"), "0");
  EXPECT_TRUE(is_one("01"));
  EXPECT_FALSE(is_one("10"));
}

}  // namespace
}  // namespace syrinx::text
