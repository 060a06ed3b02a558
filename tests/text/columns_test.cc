#include "text/columns.h"

#include <gtest/gtest.h>

namespace syrinx::text {
namespace {

TEST(Columns, PrintableTextHasNoControlCharacters) {
  EXPECT_EQ(printable("a\x1b[31m\nb\x7f"), "a [31m\nb ");
  EXPECT_EQ(printable("\xC2\x80\xC2\x9B\xC2\x9F\xC2\xA0\xC3\x9B\xC2"), "      \xC2\xA0\xC3\x9B ");
  EXPECT_EQ(printable("a\x9B"
                      "31m\xE2\x82 \xC3\xA9"),
            "a 31m   \xC3\xA9");  // no UTF-8; some terminals heed it
}

}  // namespace
}  // namespace syrinx::text
