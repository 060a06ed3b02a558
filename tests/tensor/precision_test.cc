#include "tensor/precision.h"

#include <gtest/gtest.h>

namespace syrinx {
namespace {

TEST(Precision, NamesAreReadAsTheyAreWritten) {
  for (const Precision precision : kAllPrecisions) {
    const Result<Precision> read = parse_precision(precision_name(precision));
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(*read, precision);
  }
}

TEST(Precision, OtherNamesAreRefused) {
  for (const char* name : {"", "f16", "INT8", "int8 ", "int"}) {
    const Result<Precision> read = parse_precision(name);
    ASSERT_FALSE(read.has_value()) << name;
    EXPECT_EQ(read.error().code, Code::kInvalidArgument);
  }
  EXPECT_EQ(parse_precision("f16").error().message, "'f16' is not a precision; use f32, bf16, int8 or int4");
}

}  // namespace
}  // namespace syrinx
