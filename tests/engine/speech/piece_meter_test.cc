#include "engine/speech/piece_meter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace syrinx {
namespace {

constexpr int kRateHz = 24000;

// Square wave: its root mean square is its height.
std::vector<float> wave(double seconds, float height) {
  std::vector<float> samples(static_cast<size_t>(seconds * kRateHz + 0.5));
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = i / 40 % 2 == 0 ? height : -height;
  return samples;
}

class PieceMeterTest : public testing::Test {
 protected:
  PieceFigures piece(size_t tokens, double seconds, float height) {
    meter_.hear(wave(seconds, height));
    const auto figures = meter_.end(tokens);
    EXPECT_TRUE(figures);
    spread_.add(figures.value_or(PieceFigures()));
    return figures.value_or(PieceFigures());
  }
  PieceMeter meter_{kRateHz};
  PieceSpread spread_;
};

TEST_F(PieceMeterTest, SilenceCountsForNeitherFigure) {
  meter_.hear(wave(0.5, 0));
  meter_.hear(wave(2, 0.1f));
  meter_.hear(wave(1, 0.0009f));
  const auto heard = meter_.end(10);
  ASSERT_TRUE(heard);
  EXPECT_DOUBLE_EQ(heard->sound_s, 2);
  EXPECT_DOUBLE_EQ(heard->rate, 5);
  EXPECT_NEAR(heard->loudness_db, -20, 1e-5);
  EXPECT_FALSE(heard->rate_departs || heard->loudness_departs);
}

TEST_F(PieceMeterTest, CutTriesAndOtherVoicesCountForNothing) {
  piece(20, 4, 0.1f);
  meter_.hear(wave(3, 0.5f));
  meter_.begin();
  EXPECT_DOUBLE_EQ(piece(20, 4, 0.1f).rate, 5);
  meter_.hear(wave(1, 0.9f));
  const auto cut = meter_.end(20, false);
  ASSERT_TRUE(cut);
  EXPECT_DOUBLE_EQ(cut->rate, 20);
  EXPECT_FALSE(cut->rate_departs || cut->loudness_departs);
  EXPECT_FALSE(piece(20, 4, 0.1f).rate_departs);
  meter_.forget();
  const PieceFigures other = piece(40, 4, 0.9f);
  EXPECT_FALSE(other.rate_departs || other.loudness_departs);
  EXPECT_TRUE(piece(20, 4, 0.1f).rate_departs);
}

TEST_F(PieceMeterTest, ChunksDoNotChangeFigures) {
  const std::vector<float> samples = wave(1.237, 0.3f);
  const PieceFigures whole = piece(20, 1.237, 0.3f);
  for (size_t at = 0; at < samples.size(); at += 777)
    meter_.hear(std::span(samples).subspan(at, std::min<size_t>(777, samples.size() - at)));
  const auto parts = meter_.end(20);
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->sound_s, whole.sound_s);
  EXPECT_EQ(parts->loudness_db, whole.loudness_db);
}

TEST_F(PieceMeterTest, RateBeyondTheFactorDeparts) {
  piece(20, 4, 0.1f);
  EXPECT_FALSE(piece(29, 4, 0.1f).rate_departs);
  EXPECT_FALSE(piece(20, 4, 0.1f).rate_departs);
  EXPECT_TRUE(piece(31, 4, 0.1f).rate_departs);
  EXPECT_TRUE(piece(12, 4, 0.1f).rate_departs);
  EXPECT_FALSE(piece(20, 4, 0.1f).rate_departs);
  EXPECT_EQ(spread_.pieces, 6u);
  EXPECT_EQ(spread_.uneven_rate, 2u);
  EXPECT_EQ(spread_.uneven_loudness, 0u);
  EXPECT_DOUBLE_EQ(spread_.least_rate, 3);
  EXPECT_DOUBLE_EQ(spread_.greatest_rate, 7.75);
}

TEST_F(PieceMeterTest, LoudnessBeyondTheBoundDeparts) {
  piece(20, 2, 0.1f);
  EXPECT_FALSE(piece(20, 2, 0.19f).loudness_departs);
  EXPECT_FALSE(piece(20, 2, 0.1f).loudness_departs);
  EXPECT_TRUE(piece(20, 2, 0.21f).loudness_departs);
  EXPECT_TRUE(piece(20, 2, 0.04f).loudness_departs);
  EXPECT_EQ(spread_.uneven_loudness, 2u);
  EXPECT_EQ(spread_.uneven_rate, 0u);
  EXPECT_NEAR(spread_.least_loudness_db, 20 * std::log10(0.04), 1e-5);
  EXPECT_NEAR(spread_.greatest_loudness_db, 20 * std::log10(0.21), 1e-5);
}

TEST_F(PieceMeterTest, MedianIsThatOfTheLastPieces) {
  for (size_t i = 0; i < PieceMeter::kRemembered; ++i) piece(20, 4, 0.1f);
  for (size_t i = 0; i < PieceMeter::kRemembered / 2; ++i) EXPECT_TRUE(piece(40, 4, 0.1f).rate_departs);
  piece(40, 4, 0.1f);
  EXPECT_FALSE(piece(40, 4, 0.1f).rate_departs);
  EXPECT_TRUE(piece(20, 4, 0.1f).rate_departs);
}

TEST_F(PieceMeterTest, SilentPieceDepartsInBoth) {
  const PieceFigures first = piece(20, 1, 0);
  EXPECT_FALSE(first.rate_departs || first.loudness_departs);
  piece(20, 2, 0.1f);
  const PieceFigures silent = piece(20, 1, 0);
  EXPECT_TRUE(silent.rate_departs && silent.loudness_departs);
  EXPECT_EQ(spread_.pieces, 3u);
  EXPECT_DOUBLE_EQ(spread_.least_rate, 10);
  EXPECT_DOUBLE_EQ(spread_.greatest_rate, 10);
  EXPECT_NEAR(spread_.greatest_loudness_db, -20, 1e-5);
}

TEST_F(PieceMeterTest, ShortPieceIsNotMeasured) {
  meter_.hear(wave(1, 0.9f));
  EXPECT_FALSE(meter_.end(PieceMeter::kLeastTokens - 1));
  EXPECT_NEAR(piece(20, 2, 0.1f).loudness_db, -20, 1e-5);
}

TEST_F(PieceMeterTest, SpreadsOfTextsAdd) {
  piece(20, 4, 0.1f);
  PieceSpread sum;
  sum.add(PieceSpread());
  sum.add(spread_);
  sum.add(PieceSpread());
  piece(20, 2, 0.01f);
  sum.add(spread_);
  EXPECT_EQ(sum.pieces, 3u);
  EXPECT_DOUBLE_EQ(sum.least_rate, 5);
  EXPECT_DOUBLE_EQ(sum.greatest_rate, 10);
  EXPECT_NEAR(sum.least_loudness_db, -40, 1e-5);
  EXPECT_NEAR(sum.greatest_loudness_db, -20, 1e-5);
}

TEST_F(PieceMeterTest, LogMarksDepartures) {
  EXPECT_EQ(describe(piece(25, 2.5, 0.1f)), "25 tokens in 2.50 s of sound, 10.0 a second, -20.0 dBFS");
  EXPECT_EQ(describe(piece(25, 1, 0.01f)),
            "25 tokens in 1.00 s of sound, 25.0 a second (departs), -40.0 dBFS (departs)");
  EXPECT_EQ(describe(piece(25, 1, 0)), "25 tokens, silence alone");
}

}  // namespace
}  // namespace syrinx
