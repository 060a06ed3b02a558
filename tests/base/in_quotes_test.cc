#include "base/in_quotes.h"

#include <gtest/gtest.h>

namespace syrinx {
namespace {

TEST(InQuotes, ShowsShortTextsWhole) {
  EXPECT_EQ(in_quotes(""), "''");
  EXPECT_EQ(in_quotes("bfloat16"), "'bfloat16'");
  EXPECT_EQ(in_quotes(std::string(60, 'x')), "'" + std::string(60, 'x') + "'");
}

TEST(InQuotes, CutsLongTextsBetweenCharacters) {
  EXPECT_EQ(in_quotes(std::string(61, 'x')), "'" + std::string(60, 'x') + "...' (61 bytes)");
  EXPECT_EQ(in_quotes("ab\xE2\x80\xA6 and more", 4), "'ab...' (14 bytes)");
  EXPECT_EQ(in_quotes("ab\xE2\x80\xA6 and more", 5), "'ab\xE2\x80\xA6...' (14 bytes)");
  EXPECT_EQ(in_quotes(std::string(100, '\x80'), 10), "'...' (100 bytes)");
}

TEST(InQuotes, KeepsTerminalsOutOfIt) {
  EXPECT_EQ(in_quotes(std::string("a\x1b[2J\n\0b\x7f", 9)), "'a?[2J??b?'");
  EXPECT_EQ(in_quotes("a\xC2\x9B"
                      "2J\xC2\x80 \xC2\x9F"),
            "'a?2J? ?'");
  EXPECT_EQ(in_quotes("\xC2\xA0\xC3\x9B\xE2\x82\x9B\xC2"),
            "'\xC2\xA0\xC3\x9B\xE2\x82\x9B\xC2'");  // other characters' bytes
}

}  // namespace
}  // namespace syrinx
