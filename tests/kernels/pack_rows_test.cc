#include "kernels/pack_rows.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace syrinx::kernels {
namespace {

// Seeded values that f16 and bf16 hold alike, as the bytes of a type at an odd address.
struct Stored {
  Stored(size_t columns, size_t channels, DType dtype, uint32_t seed) : values(columns * channels) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    bytes.resize(1 + values.size() * dtype_size(dtype));
    for (size_t i = 0; i < values.size(); ++i) {
      const float drawn = static_cast<float>(std::lround(normal(random) * 32.0f)) / 32.0f;
      uint32_t bits = 0;
      std::memcpy(&bits, &drawn, sizeof bits);
      values[i] = drawn;
      if (dtype == DType::kBF16) bits >>= 16;
      if (dtype == DType::kF16 && drawn != 0.0f)
        bits = (bits >> 31 << 15) | ((((bits >> 23) & 0xFF) - 112) << 10) | ((bits >> 13) & 0x3FF);
      if (dtype == DType::kF16 && drawn == 0.0f) bits = 0;
      std::memcpy(bytes.data() + 1 + i * dtype_size(dtype), &bits, dtype_size(dtype));
    }
    rows = {.bytes = std::span(bytes).subspan(1), .dtype = dtype, .columns = columns};
  }
  std::vector<float> values;
  std::vector<std::byte> bytes;
  StoredRows rows;
};

// The reference is pack.h, which packs by element; in every type and from several parts.
TEST(PackRows, EqualsPackingByElement) {
  ThreadTeam one_thread(1), two_threads(2);
  uint32_t seed = 1;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const size_t channels : {1, 4, 30, 257}) {
      for (const size_t columns : {1, 32, 100}) {
        const Stored first(columns, channels, dtype, ++seed), second(7, channels, DType::kF32, ++seed);
        const std::vector<StoredRows> parts = {first.rows, second.rows};
        std::vector<float> bias(columns + 7);
        for (size_t n = 0; n < bias.size(); ++n) bias[n] = static_cast<float>(n);
        const auto weight = [&](size_t n, size_t k, size_t) {
          return n < columns ? first.values[n * channels + k] : second.values[(n - columns) * channels + k];
        };
        const MatrixShape shape{.columns = columns + 7, .channels = channels};
        for (const PanelType type : {PanelType::kF32, PanelType::kBf16, PanelType::kInt8}) {
          const OwnedMatrix one = type == PanelType::kF32    ? pack_f32(shape, weight, bias)
                                  : type == PanelType::kBf16 ? pack_exact(shape, weight, bias)
                                                             : pack_int8(shape, weight, bias);
          const OwnedMatrix rows =
              pack_rows(type, channels, parts, bias, channels == 30 && columns == 100 ? two_threads : one_thread);
          ASSERT_EQ(rows.view.columns, shape.columns);
          ASSERT_EQ(rows.panels.size(), one.panels.size());
          EXPECT_EQ(std::memcmp(rows.panels.data(), one.panels.data(), one.panels.size()), 0)
              << dtype_name(dtype) << " " << channels << " -> " << columns;
          for (size_t n = 0; n < shape.columns; ++n) {
            ASSERT_EQ(rows.bias[n], bias[n]);
            if (type != PanelType::kInt8) continue;
            ASSERT_EQ(rows.scale[n], one.scale[n]) << n;
            ASSERT_EQ(rows.column_sum[n], one.column_sum[n]) << n;
          }
        }
      }
    }
  }
}

TEST(PackRows, NonFiniteValuesAreFound) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    Stored stored(5, 7, dtype, 3);
    EXPECT_TRUE(all_finite(stored.rows.bytes, dtype));
    const uint32_t infinity = dtype == DType::kF32 ? 0xFF800000u : dtype == DType::kF16 ? 0xFC00u : 0xFF80u;
    std::memcpy(stored.bytes.data() + 1 + 20 * dtype_size(dtype), &infinity, dtype_size(dtype));
    EXPECT_FALSE(all_finite(stored.rows.bytes, dtype)) << dtype_name(dtype);
  }
}

}  // namespace
}  // namespace syrinx::kernels
