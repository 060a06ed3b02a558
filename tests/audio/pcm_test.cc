#include "audio/pcm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace syrinx {
namespace {

std::vector<int16_t> quantise(PcmQuantizer& quantizer, const std::vector<float>& in) {
  std::vector<int16_t> out(in.size());
  quantizer.convert(in, out);
  return out;
}

TEST(Pcm, EveryIntegerComesBack) {
  std::vector<int16_t> all(65536), back(65536);
  for (int i = 0; i < 65536; ++i) all[static_cast<size_t>(i)] = static_cast<int16_t>(i - 32768);
  std::vector<float> real(65536);
  pcm_to_float(all, real);
  PcmQuantizer quantizer;
  quantizer.convert(real, back);
  EXPECT_EQ(back, all);
  EXPECT_EQ(quantizer.clipped_samples(), 0u);
}

TEST(Pcm, RoundsHalvesToEven) {
  PcmQuantizer quantizer;
  EXPECT_EQ(quantise(quantizer, {0.5f / 32768, 1.5f / 32768, -0.5f / 32768, 2.4f / 32768, -2.6f / 32768}),
            (std::vector<int16_t>{0, 2, 0, 2, -3}));
}

TEST(Pcm, ClipsAndCounts) {
  const float infinity = std::numeric_limits<float>::infinity();
  PcmQuantizer quantizer;
  EXPECT_EQ(quantise(quantizer, {1.0f, -1.0f, 1.0001f, -1.5f, 1e30f, infinity, -infinity, std::nanf("")}),
            (std::vector<int16_t>{32767, -32768, 32767, -32768, 32767, 32767, -32768, 0}));
  EXPECT_EQ(quantizer.clipped_samples(), 6u);
}

TEST(Pcm, DitherIsSeededTriangularAndIndependentOfCalls) {
  std::vector<float> in(60000, 0.3f / 32768);
  PcmQuantizer a(5), b(5), other(6);
  const auto whole = quantise(a, in);
  std::vector<int16_t> pieces(in.size());
  for (size_t at = 0, size = 1; at < in.size(); at += size, size = size % 977 + 1) {
    size = std::min(size, in.size() - at);
    b.convert(std::span(in).subspan(at, size), std::span(pieces).subspan(at, size));
  }
  EXPECT_EQ(whole, pieces);
  EXPECT_NE(whole, quantise(other, in));
  double mean = 0, square = 0;
  for (int16_t v : whole) {
    EXPECT_LE(std::abs(v), 1);
    mean += v;
    square += (v - 0.3) * (v - 0.3);
  }
  // The mean survives quantisation; triangular dither makes the error's power 1/4 of a step squared.
  EXPECT_NEAR(mean / static_cast<double>(whole.size()), 0.3, 0.012);
  EXPECT_NEAR(square / static_cast<double>(whole.size()), 0.25, 0.012);
}

}  // namespace
}  // namespace syrinx
