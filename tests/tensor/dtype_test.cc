#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace syrinx {
namespace {

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span<const T>(values));
}

TEST(DType, EveryTypeHasASizeAndAName) {
  for (const DType dtype : kAllDTypes) {
    EXPECT_GT(dtype_size(dtype), 0u);
    const std::string name = dtype_name(dtype);
    if (dtype != DType::kBool) {
      EXPECT_EQ(std::stoul(name.substr(name.find_first_of("1368"))), 8 * dtype_size(dtype));
    }
  }
}

TEST(DType, CountsElementsWithoutOverflow) {
  const auto count = [](std::vector<size_t> dims) { return element_count(dims); };
  EXPECT_EQ(count({}), 1u);
  EXPECT_EQ(count({3, 4}), 12u);
  EXPECT_EQ(count({3, 0, 5}), 0u);
  EXPECT_EQ(count({size_t{1} << 24, size_t{1} << 24}), size_t{1} << 48);
  EXPECT_FALSE(count({size_t{1} << 32, size_t{1} << 32}));
  EXPECT_FALSE(count({std::numeric_limits<size_t>::max()}));
  EXPECT_FALSE(count({0, std::numeric_limits<size_t>::max()}));
  EXPECT_FALSE(count(std::vector<size_t>(kMaxRank + 1, 1)));
  EXPECT_EQ(dims_text(std::vector<size_t>{3, 4}), "[3, 4]");
}

TEST(DType, HalfPrecisionMatchesTheDefinitionForAllBits) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const uint32_t exponent = (bits >> 10) & 31;
    const double fraction = bits & 1023;
    double expected =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, static_cast<int>(exponent) - 25);
    if (exponent == 31) expected = fraction == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
    if (bits >= 32768) expected = -expected;
    const float got = f16_to_f32(static_cast<uint16_t>(bits));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got));
    } else {
      ASSERT_EQ(static_cast<double>(got), expected) << bits;
    }
  }
  EXPECT_EQ(bf16_to_f32(0x3fc0), 1.5f);
  EXPECT_EQ(bf16_to_f32(0xc040), -3.0f);
}

TEST(DType, ConvertsEveryTypeToF32) {
  const std::vector<float> want{0, 1, 100};
  EXPECT_EQ(to_f32(bytes_of<double>({0, 1, 100}), DType::kF64), want);
  EXPECT_EQ(to_f32(bytes_of<float>({0, 1, 100}), DType::kF32), want);
  EXPECT_EQ(to_f32(bytes_of<uint16_t>({0, 0x3c00, 0x5640}), DType::kF16), want);
  EXPECT_EQ(to_f32(bytes_of<uint16_t>({0, 0x3f80, 0x42c8}), DType::kBF16), want);
  EXPECT_EQ(to_f32(bytes_of<int64_t>({0, 1, 100}), DType::kI64), want);
  EXPECT_EQ(to_f32(bytes_of<int32_t>({0, 1, 100}), DType::kI32), want);
  EXPECT_EQ(to_f32(bytes_of<int16_t>({0, 1, 100}), DType::kI16), want);
  EXPECT_EQ(to_f32(bytes_of<int8_t>({0, 1, 100}), DType::kI8), want);
  EXPECT_EQ(to_f32(bytes_of<uint64_t>({0, 1, 100}), DType::kU64), want);
  EXPECT_EQ(to_f32(bytes_of<uint32_t>({0, 1, 100}), DType::kU32), want);
  EXPECT_EQ(to_f32(bytes_of<uint16_t>({0, 1, 100}), DType::kU16), want);
  EXPECT_EQ(to_f32(bytes_of<uint8_t>({0, 1, 100}), DType::kU8), want);
  EXPECT_EQ(to_f32(bytes_of<uint8_t>({0, 1, 7}), DType::kBool), (std::vector<float>{0, 1, 1}));
}

TEST(DType, ConvertsIntegersToI64AndRefusesTheRest) {
  const std::vector<int64_t> want{-3, 5};
  const std::vector<int64_t> positive{3, 5};
  EXPECT_EQ(*to_i64(bytes_of<int64_t>({-3, 5}), DType::kI64), want);
  EXPECT_EQ(*to_i64(bytes_of<int32_t>({-3, 5}), DType::kI32), want);
  EXPECT_EQ(*to_i64(bytes_of<int16_t>({-3, 5}), DType::kI16), want);
  EXPECT_EQ(*to_i64(bytes_of<int8_t>({-3, 5}), DType::kI8), want);
  EXPECT_EQ(*to_i64(bytes_of<uint64_t>({3, 5}), DType::kU64), positive);
  EXPECT_EQ(*to_i64(bytes_of<uint32_t>({3, 5}), DType::kU32), positive);
  EXPECT_EQ(*to_i64(bytes_of<uint16_t>({3, 5}), DType::kU16), positive);
  EXPECT_EQ(*to_i64(bytes_of<uint8_t>({3, 5}), DType::kU8), positive);
  EXPECT_EQ(*to_i64(bytes_of<uint8_t>({3, 0}), DType::kBool), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(to_i64(bytes_of<float>({1}), DType::kF32).error().code, Code::kUnsupported);
}

TEST(DType, EveryHalfRoundTrips) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits & 0x7C00) == 0x7C00) continue;  // infinities, no numbers
    ASSERT_EQ(f32_to_f16(f16_to_f32(static_cast<uint16_t>(bits))), bits);
  }
}

TEST(DType, HalvesRoundToEven) {
  for (const uint32_t bits : {0u, 1u, 0x3FFu, 0x400u, 0x3C00u, 0x3C01u, 0x7BFDu}) {
    const auto low = static_cast<uint16_t>(bits), high = static_cast<uint16_t>(bits + 1);
    const float middle = (f16_to_f32(low) + f16_to_f32(high)) / 2;
    EXPECT_EQ(f32_to_f16(middle), bits % 2 == 0 ? low : high);
    EXPECT_EQ(f32_to_f16(std::nextafter(middle, 1e9f)), high);
    EXPECT_EQ(f32_to_f16(std::nextafter(middle, -1e9f)), low);
    EXPECT_EQ(f32_to_f16(-std::nextafter(middle, 1e9f)), high | 0x8000);
  }
  EXPECT_EQ(f32_to_f16(65519.0f), 0x7BFF);
  EXPECT_EQ(f32_to_f16(1e30f), 0x7BFF);
  EXPECT_EQ(f32_to_f16(-1e30f), 0xFBFF);
}

}  // namespace
}  // namespace syrinx
