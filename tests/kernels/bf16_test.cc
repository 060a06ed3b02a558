#include "kernels/bf16.h"

#include <bit>
#include <limits>

#include "for_each_target.h"
#include "tensor/dtype.h"

namespace syrinx::kernels {
namespace {

std::vector<uint16_t> rounded(const std::vector<float>& from) {
  std::vector<uint16_t> to(from.size());
  round_rows({from.data(), {1, from.size()}}, to.data(), to.size());
  return to;
}

TEST(Bf16, RoundsRowsOfAnyStride) {
  for_each_target([] {
    for (const size_t columns : edge_sizes()) {
      const size_t rows = 3, stride = columns + 2;
      TestValues x(rows * (columns + 1), 7);
      // Halves to even, upwards and downwards; the largest number; infinity; -0; a NaN of the lower half alone.
      constexpr uint32_t edges[] = {0x3F808000, 0x3F818000, 0x3F808001, 0x3F817FFF, 0x7F7F7FFF, 0x7F800000, 0x80000000};
      for (size_t i = 0; i < std::size(edges); ++i) x[(i * 5) % x.size()] = std::bit_cast<float>(edges[i]);
      std::vector<uint16_t> y(rows * stride, 0x1234);
      round_rows({x.data(), {rows, columns}, {columns + 1, 1}}, y.data(), stride);
      for (size_t m = 0; m < rows; ++m) {
        for (size_t n = 0; n < columns; ++n)
          ASSERT_EQ(y[m * stride + n], f32_to_bf16(x[m * (columns + 1) + n])) << m << ", " << n << " of " << columns;
        ASSERT_EQ(y[m * stride + columns], 0x1234);
      }
      x[0] = std::bit_cast<float>(0x7F800001);
      round_rows({x.data(), {1, columns}, {columns + 1, 1}}, y.data(), stride);
      ASSERT_TRUE(std::isnan(bf16_to_f32(y[0])));
    }
  });
}

// Halfway between two neighbours, a little below and above it, and at the ends of the range.
TEST(Bf16, HalvesRoundToEvenNanStays) {
  for_each_target([] {
    std::vector<float> from;
    for (const uint32_t upper : {0x3F80u, 0x3F81u, 0xBF80u, 0xBF81u, 0x0000u, 0x8001u, 0x7F7Fu, 0xFF7Fu})
      for (const uint32_t lower : {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu})
        from.push_back(std::bit_cast<float>(upper << 16 | lower));
    const std::vector<uint16_t> to = rounded(from);
    for (size_t i = 0; i < from.size(); ++i) {
      const uint32_t bits = std::bit_cast<uint32_t>(from[i]), upper = bits >> 16, lower = bits & 0xFFFF;
      const bool up = lower > 0x8000 || (lower == 0x8000 && (upper & 1) != 0);
      EXPECT_EQ(to[i], upper + (up ? 1 : 0)) << std::hex << bits;
    }
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<uint16_t> strange =
        rounded({infinity, -infinity, std::bit_cast<float>(0x7F800001u), std::bit_cast<float>(0xFFFFFFFFu)});
    EXPECT_EQ(strange[0], 0x7F80);
    EXPECT_EQ(strange[1], 0xFF80);
    EXPECT_TRUE(std::isnan(bf16_to_f32(strange[2])));
    EXPECT_TRUE(std::isnan(bf16_to_f32(strange[3])));
  });
}

TEST(Bf16, WideningIsExact) {
  for_each_target([] {
    std::vector<uint16_t> from(65536);
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint16_t>(i);
    for (const size_t columns : {size_t{8192}, size_t{8191}}) {  // eight rows, each with something behind it that stays
      std::vector<float> to(8 * 8193, 7.0f);
      widen_rows({from.data(), {8, columns}, {8192, 1}}, to.data(), 8193);
      for (size_t m = 0; m < 8; ++m) {
        for (size_t n = 0; n < columns; ++n)
          ASSERT_EQ(std::bit_cast<uint32_t>(to[m * 8193 + n]), static_cast<uint32_t>(m * 8192 + n) << 16);
        for (size_t n = columns; n < 8193; ++n) ASSERT_EQ(to[m * 8193 + n], 7.0f);
      }
    }
  });
}

}  // namespace
}  // namespace syrinx::kernels
