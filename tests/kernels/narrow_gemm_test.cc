#include "kernels/narrow_gemm.h"

#include <bit>

#include "for_each_target.h"
#include "kernels/pack_rows.h"

namespace syrinx::kernels {
namespace {

constexpr PanelType kTypes[] = {PanelType::kBf16, PanelType::kInt8Symmetric, PanelType::kInt4, PanelType::kInt8Blocks,
                                PanelType::kInt4Blocks};
const char* type_name(PanelType type) {
  switch (type) {
    case PanelType::kBf16: return "bf16";
    case PanelType::kInt4: return "int4";
    case PanelType::kInt8Blocks: return "int8 blocks";
    case PanelType::kInt4Blocks: return "int4 blocks";
    default: return "int8";
  }
}

float rounded_to_bf16(float v) {
  const auto bits = std::bit_cast<uint32_t>(v);
  return std::bit_cast<float>((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000u);
}

// The weight of column n at depth k, read out of the panels by the layout that packed_matrix.h states.
float stored_weight(const PackedMatrix& m, size_t n, size_t k) {
  const size_t column = n % kPanelColumns;
  const auto* const panel = static_cast<const uint8_t*>(m.panels) + n / kPanelColumns * m.panel_bytes();
  const auto bf16 = [&](size_t byte) {
    uint16_t bits = 0;
    std::memcpy(&bits, panel + byte, sizeof bits);
    return bf16_to_f32(bits);
  };
  const auto f16 = [&](size_t byte) {
    uint16_t bits = 0;
    std::memcpy(&bits, panel + byte, sizeof bits);
    return f16_to_f32(bits);
  };
  switch (m.type) {
    case PanelType::kInt8Blocks: {
      const size_t block = k / kBlockInputs * (2 * kPanelColumns + kBlockInputs * kPanelColumns);
      const size_t at = block + 2 * kPanelColumns + (k % kBlockInputs / 4 * kPanelColumns + column) * 4 + k % 4;
      return f16(block + 2 * column) * static_cast<float>(static_cast<int8_t>(panel[at]));
    }
    case PanelType::kInt4Blocks: {
      const size_t block = k / kBlockInputs * (4 * kPanelColumns + kBlockInputs / 2 * kPanelColumns);
      const size_t in_block = k % kBlockInputs;
      const uint8_t both = panel[block + 4 * kPanelColumns + (in_block / 8 * kPanelColumns + column) * 4 + k % 4];
      return f16(block + 2 * column) * static_cast<float>(in_block % 8 < 4 ? both & 15 : both >> 4) +
             f16(block + 2 * kPanelColumns + 2 * column);
    }
    case PanelType::kBf16: return bf16(((k / 2 * kPanelColumns + column) * 2 + k % 2) * 2);
    case PanelType::kInt8Symmetric:
      return m.scale[n] * static_cast<int8_t>(panel[(k / 4 * kPanelColumns + column) * 4 + k % 4]);
    case PanelType::kInt4: {
      const size_t group = k / kInt4Group * (2 * kPanelColumns + kInt4Group / 2 * kPanelColumns);
      const size_t in_group = k % kInt4Group;
      const uint8_t both = panel[group + 2 * kPanelColumns + (in_group / 8 * kPanelColumns + column) * 4 + k % 4];
      return bf16(group + 2 * column) * static_cast<float>((in_group % 8 < 4 ? both & 15 : both >> 4) - 8);
    }
    default: return 0.0f;
  }
}

struct Problem {
  Problem(PanelType type, size_t rows, size_t channels, size_t columns, uint32_t seed)
      : rows(rows), stride(round_up(channels, 32)), out_stride(round_up(columns, 32)), weights(columns * channels) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    bias.resize(columns);
    for (auto* values : {&weights, &bias})
      for (float& v : *values) v = normal(random);
    x.assign(rows * stride, 0.0f);
    addend.assign(rows * out_stride, 0.0f);
    y.assign(rows * out_stride, 0.0f);
    for (size_t r = 0; r < rows; ++r) {
      for (size_t k = 0; k < channels; ++k) x[r * stride + k] = normal(random) * static_cast<float>(r + 1);
      for (size_t n = 0; n < columns; ++n) addend[r * out_stride + n] = normal(random);
    }
    ThreadTeam team(1);
    const StoredRows stored{.bytes = std::as_bytes(std::span(weights)), .dtype = DType::kF32, .columns = columns};
    matrix = pack_rows(type, channels, std::span(&stored, 1), bias, team);
  }
  View<const float, 2> input() const { return {x.data(), {rows, matrix.view.channels}, {stride, 1}}; }
  View<const float, 2> added() const { return {addend.data(), {rows, matrix.view.columns}, {out_stride, 1}}; }
  View<float, 2> output() { return {y.data(), {rows, matrix.view.columns}, {out_stride, 1}}; }
  void run() {
    std::vector<std::byte> scratch(narrow_rows_bytes(matrix.view, rows));
    const NarrowRows narrow = plan_narrow_rows(matrix.view, rows, scratch);
    narrow_rows(matrix.view, input(), {0, rows}, narrow);
    narrow_gemm(matrix.view, narrow, added(), output(), {0, matrix.view.panel_count()});
  }
  // The activation as the type rounds it.
  double activation(size_t r, size_t k) const {
    const float v = x[r * stride + k];
    if (matrix.view.type == PanelType::kBf16) return rounded_to_bf16(v);
    float range = 0.0f;
    const size_t first = is_blocks(matrix.view.type) ? k / kBlockInputs * kBlockInputs : 0;
    const size_t end =
        is_blocks(matrix.view.type) ? std::min(first + kBlockInputs, matrix.view.channels) : matrix.view.channels;
    for (size_t i = first; i < end; ++i) range = std::max(range, std::fabs(x[r * stride + i]));
    if (range <= 1e-30f) return 0.0;
    return std::nearbyint(v * (127.0f / range)) * static_cast<double>(range / 127.0f);
  }

  size_t rows, stride, out_stride;
  std::vector<float> weights, bias, x, addend, y;
  OwnedMatrix matrix;
};

TEST(NarrowGemm, MatchesItsTwin) {
  for_each_target([] {
    uint32_t seed = 1;
    for (const PanelType type : kTypes) {
      for (const size_t channels : {1, 6, 33, 64, 100, 257}) {
        for (const size_t columns : {1, 32, 70}) {
          for (const size_t rows : {1, 2, 3, 5, 7, 14, 17, 45}) {
            Problem p(type, rows, channels, columns, ++seed);
            p.run();
            for (size_t r = 0; r < rows; ++r) {
              std::vector<double> activations(channels);
              for (size_t k = 0; k < channels; ++k) activations[k] = p.activation(r, k);
              for (size_t n = 0; n < columns; ++n) {
                Expected e;
                e.add(p.bias[n]);
                e.add(p.addend[r * p.out_stride + n]);
                for (size_t k = 0; k < channels; ++k) e.add(activations[k], stored_weight(p.matrix.view, n, k));
                ASSERT_TRUE(within(e, sum_factor(channels + 4), p.y[r * p.out_stride + n]))
                    << type_name(type) << " rows " << rows << " channels " << channels << " columns " << columns
                    << " at " << r << ", " << n;
              }
              for (size_t n = columns; n < p.out_stride; ++n) ASSERT_EQ(p.y[r * p.out_stride + n], 0.0f);
            }
          }
        }
      }
    }
  });
}

// How far a packed weight may be from the real one: half a step, but for what int4 clips.
TEST(NarrowGemm, PackedWeightsAreNear) {
  for (const PanelType type : kTypes) {
    const Problem p(type, 1, 130, 40, 5);
    double squares = 0, errors = 0;
    for (size_t n = 0; n < 40; ++n) {
      float largest = 0.0f;
      for (size_t k = 0; k < 130; ++k) largest = std::max(largest, std::fabs(p.weights[n * 130 + k]));
      for (size_t k = 0; k < 130; ++k) {
        const float w = p.weights[n * 130 + k], away = std::fabs(stored_weight(p.matrix.view, n, k) - w);
        squares += static_cast<double>(w) * w;
        errors += static_cast<double>(away) * away;
        const float allowed = type == PanelType::kBf16 ? std::fabs(rounded_to_bf16(w) - w)
                              : type == PanelType::kInt8Symmetric || type == PanelType::kInt8Blocks
                                  ? largest / 127.0f * 0.51f
                                  : largest * 0.25f;
        ASSERT_LE(away, allowed) << type_name(type);
      }
    }
    // Uniform steps over a normal distribution's range: 1 part in 300, 130 and 10 of its width; 16 of them from the
    // least of 32 to the largest leave 1 in 12.8, and lines of least squares 1 in 13.9.
    const double bound = type == PanelType::kBf16         ? 1.0 / 400
                         : type == PanelType::kInt4       ? 1.0 / 9
                         : type == PanelType::kInt4Blocks ? 1.0 / 13.5
                                                          : 1.0 / 120;
    EXPECT_LT(std::sqrt(errors / squares), bound) << type_name(type);
    std::printf("%s: relative error of the weights %.4f\n", type_name(type), std::sqrt(errors / squares));
  }
}

// Rows that share pieces of a panel, 45 of them in two tiles, against each alone: deeper than a piece, and less.
TEST(NarrowGemm, RowKeepsBitsAmongOthers) {
  for_each_target([] {
    for (const PanelType type : kTypes) {
      for (const size_t rows : {2, 4, 6, 8, 13, 16, 19, 32, 45}) {
        const size_t channels = rows % 2 == 0 ? 1100 : 200;
        Problem all(type, rows, channels, 70, 7);
        all.run();
        for (size_t r = 0; r < all.rows; ++r) {
          std::vector<std::byte> scratch(narrow_rows_bytes(all.matrix.view, 1));
          const NarrowRows one = plan_narrow_rows(all.matrix.view, 1, scratch);
          const View<const float, 2> row(all.x.data() + r * all.stride, {1, channels}, {all.stride, 1});
          narrow_rows(all.matrix.view, row, {0, 1}, one);
          std::vector<float> y(all.addend.begin() + static_cast<ptrdiff_t>(r * all.out_stride),
                               all.addend.begin() + static_cast<ptrdiff_t>((r + 1) * all.out_stride));
          const View<float, 2> in_place(y.data(), {1, 70}, {all.out_stride, 1});
          for (size_t p = 0; p < all.matrix.view.panel_count(); ++p)
            narrow_gemm(all.matrix.view, one, in_place, in_place, {p, p + 1});
          for (size_t n = 0; n < 70; ++n)
            ASSERT_EQ(y[n], all.y[r * all.out_stride + n])
                << type_name(type) << " row " << r << " of " << rows << " column " << n;
        }
      }
    }
  });
}

TEST(NarrowGemm, ExtremesDoNotSaturate) {
  for_each_target([] {
    for (const PanelType type : kTypes) {
      Problem p(type, 3, 512, 32, 9);
      std::fill(p.weights.begin(), p.weights.end(), -2.0f);
      std::fill(p.x.begin(), p.x.end(), -3.0f);
      ThreadTeam team(1);
      const StoredRows stored{.bytes = std::as_bytes(std::span(p.weights)), .dtype = DType::kF32, .columns = 32};
      p.matrix = pack_rows(type, 512, std::span(&stored, 1), {}, team);
      std::fill(p.addend.begin(), p.addend.end(), 0.0f);
      p.run();
      const float scales_rounded = is_blocks(type) ? 3072.0f / 2048 : 0.01f;  // 2 / 127 in f16
      for (const float y : p.y) ASSERT_NEAR(y, 3072.0f, scales_rounded) << type_name(type);
    }
  });
}

TEST(NarrowGemm, ZerosStayZerosAndFaultsAreSeen) {
  for_each_target([] {
    for (const PanelType type : kTypes) {
      Problem p(type, 3, 70, 33, 11);
      std::fill(p.addend.begin(), p.addend.end(), 0.0f);
      std::fill_n(p.x.begin(), p.stride, 0.0f);
      p.x[p.stride + 69] = std::numeric_limits<float>::quiet_NaN();
      p.x[2 * p.stride + 3] = std::numeric_limits<float>::infinity();
      p.run();
      for (size_t n = 0; n < 33; ++n) {
        EXPECT_EQ(p.y[n], p.bias[n]) << type_name(type);
        EXPECT_FALSE(std::isfinite(p.y[p.out_stride + n])) << type_name(type) << " not a number";
        EXPECT_FALSE(std::isfinite(p.y[2 * p.out_stride + n])) << type_name(type) << " infinity";
      }
    }
  });
}

// ggml's blocks of the same size are kept as they are: any scale and offset in f16 with both ends in use.
TEST(NarrowGemm, BlocksKeepNumbersOfGgml) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0.0f, 0.02f);
  for (const PanelType type : {PanelType::kInt8Blocks, PanelType::kInt4Blocks}) {
    const int least = type == PanelType::kInt4Blocks ? 0 : -127, most = type == PanelType::kInt4Blocks ? 15 : 127;
    std::uniform_int_distribution<int> whole(least, most);
    Problem p(type, 1, 96, 40, 13);
    for (size_t first = 0; first < p.weights.size(); first += kBlockInputs) {
      const float scale = f16_to_f32(f32_to_f16(std::fabs(normal(random)) + 1e-4f));
      const float offset = type == PanelType::kInt4Blocks ? f16_to_f32(f32_to_f16(normal(random))) : 0.0f;
      for (size_t k = 0; k < kBlockInputs; ++k) {
        const int number = k == 3 ? least : k == 17 ? most : whole(random);
        p.weights[first + k] = scale * static_cast<float>(number) + offset;
      }
    }
    ThreadTeam team(1);
    const StoredRows stored{.bytes = std::as_bytes(std::span(p.weights)), .dtype = DType::kF32, .columns = 40};
    p.matrix = pack_rows(type, 96, std::span(&stored, 1), {}, team);
    for (size_t n = 0; n < 40; ++n)
      for (size_t k = 0; k < 96; ++k)
        ASSERT_EQ(stored_weight(p.matrix.view, n, k), p.weights[n * 96 + k]) << type_name(type) << " " << n << " " << k;
  }
}

}  // namespace
}  // namespace syrinx::kernels
