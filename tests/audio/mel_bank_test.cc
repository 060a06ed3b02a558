#include "audio/mel_bank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace syrinx {
namespace {

// The bank as a matrix: what comes out for each unit vector.
std::vector<float> matrix_of(const MelBank& bank) {
  std::vector<float> matrix(bank.mels() * bank.bins()), power(bank.bins()), mel(bank.mels());
  for (size_t bin = 0; bin < bank.bins(); ++bin) {
    power[bin] = 1;
    bank.apply(power, mel);
    for (size_t m = 0; m < bank.mels(); ++m) matrix[m * bank.bins() + bin] = mel[m];
    power[bin] = 0;
  }
  return matrix;
}

// librosa 0.11: filters.mel(sr=16000, n_fft=512, n_mels=80 or 128), the bank of NeMo's featurizer: count of weights,
// the largest one, and weights here and there.
TEST(MelBank, AgreesWithLibrosa) {
  const auto bank80 = MelBank::slaney({.mels = 80});
  const auto bank128 = MelBank::slaney({.mels = 128});
  ASSERT_TRUE(bank80 && bank128);
  const std::vector<float> m80 = matrix_of(*bank80), m128 = matrix_of(*bank128);
  EXPECT_EQ(std::count_if(m80.begin(), m80.end(), [](float w) { return w != 0; }), 500);
  EXPECT_EQ(std::count_if(m128.begin(), m128.end(), [](float w) { return w != 0; }), 504);
  EXPECT_NEAR(*std::max_element(m80.begin(), m80.end()), 0.026406592f, 1e-8);
  EXPECT_NEAR(*std::max_element(m128.begin(), m128.end()), 0.042366076f, 1e-8);
  EXPECT_NEAR(m80[0 * 257 + 1], 0.0225345604f, 1e-8);
  EXPECT_NEAR(m80[26 * 257 + 32], 0.0221142173f, 1e-8);
  EXPECT_NEAR(m80[40 * 257 + 55], 0.0144441761f, 1e-8);
  EXPECT_NEAR(m80[79 * 257 + 250], 0.00210355804f, 1e-8);
  EXPECT_NEAR(m128[0 * 257 + 1], 0.0283775423f, 1e-8);
  EXPECT_NEAR(m128[42 * 257 + 32], 0.0316114612f, 1e-8);
  EXPECT_NEAR(m128[64 * 257 + 55], 0.0188182835f, 1e-8);
  EXPECT_NEAR(m128[127 * 257 + 250], 0.00522318855f, 1e-8);
}

// whisper's mel_filters.npz: 400 points.
TEST(MelBank, AgreesWithTheFiltersOfWhisper) {
  const auto bank = MelBank::slaney({.mels = 80, .fft_size = 400});
  ASSERT_TRUE(bank);
  const std::vector<float> matrix = matrix_of(*bank);
  EXPECT_EQ(bank->bins(), 201u);
  EXPECT_EQ(std::count_if(matrix.begin(), matrix.end(), [](float w) { return w != 0; }), 391);
  EXPECT_NEAR(matrix[0 * 201 + 1], 0.0248625949f, 1e-8);
  EXPECT_NEAR(matrix[7 * 201 + 7], 0.0139357522f, 1e-8);
  EXPECT_NEAR(matrix[40 * 201 + 43], 0.0147355665f, 1e-8);
  EXPECT_NEAR(matrix[79 * 201 + 192], 0.00316471187f, 1e-8);
}

TEST(MelBank, TakesACheckpointsOwnMatrix) {
  const auto bank = MelBank::slaney({.mels = 40});
  ASSERT_TRUE(bank);
  const std::vector<float> matrix = matrix_of(*bank);
  const auto again = MelBank::from_matrix(matrix, 40);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->weight_count(), bank->weight_count());
  EXPECT_EQ(matrix_of(*again), matrix);
  // A row of zeros gives zero.
  const auto empty_row = MelBank::from_matrix(std::vector<float>{0, 0, 0, 1, 2, 0}, 2);
  ASSERT_TRUE(empty_row);
  EXPECT_EQ(matrix_of(*empty_row), (std::vector<float>{0, 0, 0, 1, 2, 0}));
}

TEST(MelBank, RefusesInvalidSizesAndRanges) {
  EXPECT_FALSE(MelBank::slaney({.mels = 0}));
  EXPECT_FALSE(MelBank::slaney({.mels = 513}));
  EXPECT_FALSE(MelBank::slaney({.fft_size = 511}));
  EXPECT_FALSE(MelBank::slaney({.fft_size = 131072}));
  EXPECT_FALSE(MelBank::slaney({.high_hz = 8001}));
  EXPECT_FALSE(MelBank::slaney({.low_hz = 8000}));
  EXPECT_FALSE(MelBank::slaney({.low_hz = std::numeric_limits<double>::quiet_NaN()}));
  EXPECT_FALSE(MelBank::from_matrix({}, 1));
  EXPECT_FALSE(MelBank::from_matrix(std::vector<float>(7), 2));
  const auto infinite = MelBank::from_matrix(std::vector<float>{1, std::numeric_limits<float>::infinity()}, 1);
  ASSERT_FALSE(infinite);
  EXPECT_EQ(infinite.error().code, Code::kDataLoss);
}

}  // namespace
}  // namespace syrinx
