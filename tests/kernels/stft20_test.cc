#include "kernels/stft20.h"

#include <complex>
#include <numbers>

#include "for_each_target.h"

namespace syrinx::kernels {
namespace {

double window(size_t i) { return 0.5 - 0.5 * std::cos(2.0 * std::numbers::pi * static_cast<double>(i) / kStftSize); }

std::complex<double> turn(size_t i, size_t k) {
  return std::polar(1.0, -2.0 * std::numbers::pi * static_cast<double>(i * k % kStftSize) / kStftSize);
}

struct Bin {
  std::complex<double> value;
  double magnitude = 0;  // sum of |terms|, for the bound
};

// By the definition, with a padded copy of the signal.
std::vector<Bin> stft_twin(const std::vector<float>& signal, size_t frame) {
  const size_t n = signal.size(), half = kStftSize / 2;
  std::vector<double> padded;
  for (size_t i = half; i > 0; --i) padded.push_back(signal[i]);
  padded.insert(padded.end(), signal.begin(), signal.end());
  for (size_t i = 1; i <= half; ++i) padded.push_back(signal[n - 1 - i]);
  std::vector<Bin> bins(kStftBins);
  for (size_t k = 0; k < kStftBins; ++k) {
    for (size_t i = 0; i < kStftSize; ++i) {
      const double x = padded[frame * kStftHop + i] * window(i);
      bins[k].value += x * turn(i, k);
      bins[k].magnitude += std::abs(x);
    }
  }
  return bins;
}

std::vector<float> test_signal(size_t n, Fill fill = Fill::kNormal) {
  const TestValues values(n, static_cast<uint32_t>(n), fill);
  return {values.data(), values.data() + n};
}

void expect_spectrum(const std::vector<float>& signal, const std::vector<float>& rows) {
  for (size_t t = 0; t < stft20_rows(signal.size()); ++t) {
    const std::vector<Bin> want = stft_twin(signal, t);
    for (size_t k = 0; k < kStftBins; ++k) {
      const double bound = sum_factor(kStftSize) * FLT_EPSILON * want[k].magnitude;
      const float magnitude = rows[t * 22 + k], angle = rows[t * 22 + kStftBins + k];
      const double size = std::abs(want[k].value);
      // Below the root of the smallest number a square vanishes.
      ASSERT_NEAR(magnitude, size, 2 * bound + 4 * FLT_EPSILON * size + 2e-19) << "frame " << t << " bin " << k;
      if (size < 8 * bound + 1e-30) continue;  // an empty bin has no angle
      const double apart = std::remainder(angle - std::arg(want[k].value), 2.0 * std::numbers::pi);
      ASSERT_NEAR(apart, 0.0, 4e-7 + 2 * bound / size) << "frame " << t << " bin " << k;
      if (k == 0 || k == kStftBins - 1) {
        ASSERT_TRUE(angle == 0.0f || angle > 3.14f) << angle;
      }
    }
  }
}

TEST(Stft20, MatchesTheDefinitionAtEveryLength) {
  for_each_target([] {
    for (const size_t n : {11, 12, 15, 19, 20, 21, 25, 40, 79, 80, 81, 85, 300, 1200}) {
      const std::vector<float> signal = test_signal(n);
      std::vector<float> rows(stft20_rows(n) * 22);
      stft20(signal, 0, stft20_rows(n), {rows.data(), {stft20_rows(n), 22}});
      expect_spectrum(signal, rows);
    }
  });
}

TEST(Stft20, ZerosDenormalsLargeValuesAndConstants) {
  for_each_target([] {
    for (const Fill fill : {Fill::kZeros, Fill::kDenormal, Fill::kLarge}) {
      const std::vector<float> signal = test_signal(100, fill);
      std::vector<float> rows(21 * 22);
      stft20(signal, 0, 21, {rows.data(), {21, 22}});
      expect_spectrum(signal, rows);
    }
    const std::vector<float> constant(100, -0.25f);  // a negative real first bin: its angle is +pi
    std::vector<float> rows(21 * 22);
    stft20(constant, 0, 21, {rows.data(), {21, 22}});
    expect_spectrum(constant, rows);
    EXPECT_NEAR(rows[11], std::numbers::pi, 1e-6);
  });
}

TEST(Stft20, RangesEqualTheWhole) {
  for_each_target([] {
    const std::vector<float> signal = test_signal(600);
    std::vector<float> whole(121 * 22), part(121 * 23);
    stft20(signal, 0, 121, {whole.data(), {121, 22}});
    for (const size_t step : {1, 7, 16, 50}) {
      for (size_t begin = 0; begin < 121; begin += step) {
        const size_t end = std::min<size_t>(begin + step, 121);
        stft20(signal, begin, end, {part.data() + 1, {end - begin, 22}, {23, 1}});
        for (size_t t = begin; t < end; ++t) {
          for (size_t k = 0; k < 22; ++k) ASSERT_EQ(part[1 + (t - begin) * 23 + k], whole[t * 22 + k]);
        }
      }
    }
  });
}

// Overlap-add by the definition, all of it in double; magnitude sums give the bound.
std::vector<Expected> istft_twin(const std::vector<float>& rows, size_t total, bool head) {
  const size_t padded = (total - 1) * kStftHop + kStftSize;
  std::vector<Expected> sum(padded);
  std::vector<double> weight(padded);
  for (size_t t = 0; t < total; ++t) {
    for (size_t i = 0; i < kStftSize; ++i) weight[t * kStftHop + i] += window(i) * window(i);
    for (size_t k = 0; k < kStftBins; ++k) {
      double magnitude = rows[t * 22 + k], angle = rows[t * 22 + kStftBins + k];
      if (head) magnitude = std::exp(magnitude), angle = std::sin(angle);
      const bool end = k == 0 || k == kStftBins - 1;
      std::complex<double> bin = std::polar(end ? 1.0 : 2.0, angle) * (magnitude / kStftSize);
      if (end) bin = bin.real();
      for (size_t i = 0; i < kStftSize; ++i) {
        Expected& at = sum[t * kStftHop + i];
        at.value += window(i) * (bin * std::conj(turn(i, k))).real();
        at.magnitude += window(i) * std::abs(bin) + (end ? std::abs(magnitude) / kStftSize : 0.0);
      }
    }
  }
  std::vector<Expected> out(sum.begin() + kStftSize / 2, sum.end() - kStftSize / 2);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].value /= weight[i + kStftSize / 2];
    out[i].magnitude /= weight[i + kStftSize / 2];
  }
  return out;
}

// 88 products, the bins' own errors (sine, cosine, exponential: three units each) and the division.
constexpr double kInverseFactor = 88.0 + 12.0;

TEST(Istft20, MatchesTheDefinition) {
  for_each_target([] {
    for (const size_t total : {2, 3, 4, 5, 6, 16, 17, 18, 33, 121}) {
      const TestValues values(total * 22, static_cast<uint32_t>(total));
      const std::vector<float> rows(values.data(), values.data() + total * 22);
      std::vector<float> out((total - 1) * kStftHop);
      for (const bool head : {false, true}) {
        const SpectrumPart part{{rows.data(), {total, 22}}, 0, total};
        head ? istft20_of_head(part, 0, total - 1, out) : istft20(part, 0, total - 1, out);
        const std::vector<Expected> want = istft_twin(rows, total, head);
        ASSERT_EQ(want.size(), out.size());
        for (size_t i = 0; i < out.size(); ++i)
          ASSERT_TRUE(within(want[i], kInverseFactor, out[i])) << i << " " << total;
      }
    }
  });
}

TEST(Istft20, UndoesTheForwardTransform) {
  for_each_target([] {
    const std::vector<float> signal = test_signal(600);
    std::vector<float> rows(121 * 22), back(600);
    stft20(signal, 0, 121, {rows.data(), {121, 22}});
    istft20({{rows.data(), {121, 22}}, 0, 121}, 0, 120, back);
    for (size_t i = 0; i < 600; ++i) ASSERT_NEAR(back[i], signal[i], 100 * FLT_EPSILON) << i;
  });
}

TEST(Istft20, PiecesOfTheSpectrumGiveTheWhole) {
  for_each_target([] {
    const size_t total = 61;
    const TestValues rows(total * 22, 7);
    std::vector<float> whole(60 * kStftHop), part(60 * kStftHop);
    istft20({{rows.data(), {total, 22}}, 0, total}, 0, 60, whole);
    for (const size_t step : {1, 2, 7, 40}) {
      for (size_t begin = 0; begin < 60; begin += step) {
        const size_t end = std::min<size_t>(begin + step, 60);
        const size_t first = begin == 0 ? 0 : begin - 1, last = std::min(total, end + 2);
        const SpectrumPart piece{{rows.data() + first * 22, {last - first, 22}}, first, total};
        istft20(piece, begin, end, part);
        for (size_t i = begin * kStftHop; i < end * kStftHop; ++i) ASSERT_EQ(part[i - begin * kStftHop], whole[i]);
      }
    }
  });
}

}  // namespace
}  // namespace syrinx::kernels
