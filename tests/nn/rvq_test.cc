#include "nn/rvq.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "allocation_count.h"

namespace syrinx::nn {
namespace {

constexpr size_t kLevels = 3, kBins = 45, kWidth = 37;

std::vector<float> random_values(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<std::vector<float>> codebooks() {
  std::vector<std::vector<float>> books;
  for (uint32_t level = 0; level < kLevels; ++level) books.push_back(random_values(kBins * kWidth, level));
  return books;
}

double distance(const float* row, const std::vector<float>& x) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += std::pow(static_cast<double>(row[i]) - x[i], 2);
  return sum;
}

TEST(Rvq, CodesNameNearestRowOfEachLevel) {
  ThreadTeam team(1);
  const auto books = codebooks();
  const Rvq rvq(books, kWidth, team);
  std::vector<float> scratch(rvq.scratch_size(1));
  for (uint32_t n = 0; n < 50; ++n) {
    const std::vector<float> x = random_values(kWidth, 100 + n);
    std::vector<float> rest = x, left = x;
    std::vector<int32_t> codes(kLevels);
    rvq.encode({rest.data(), {1, kWidth}}, {codes.data(), {1, kLevels}}, scratch);
    for (size_t level = 0; level < kLevels; ++level) {
      const float* const taken = books[level].data() + static_cast<size_t>(codes[level]) * kWidth;
      const double own = distance(taken, left);
      for (size_t bin = 0; bin < kBins; ++bin) {
        const double other = distance(books[level].data() + bin * kWidth, left);
        ASSERT_GE(other, own - 1e-5 * (other + own)) << "level " << level << " row " << bin;
      }
      for (size_t i = 0; i < kWidth; ++i) left[i] -= taken[i];
    }
    EXPECT_EQ(rest, left);
    std::vector<float> sum(kWidth);
    rvq.decode(codes, sum);
    for (size_t i = 0; i < kWidth; ++i) EXPECT_NEAR(sum[i] + rest[i], x[i], 1e-5);
  }
}

TEST(Rvq, VectorsDoNotDependOnOthers) {
  ThreadTeam team(1);
  const Rvq rvq(codebooks(), kWidth, team);
  constexpr size_t kVectors = 30;
  const std::vector<float> x = random_values(kVectors * kWidth, 200);
  std::vector<float> rests = x, alone = x, scratch(rvq.scratch_size(kVectors));
  std::vector<int32_t> codes(kVectors * kLevels), codes_alone = codes;
  rvq.encode({rests.data(), {kVectors, kWidth}}, {codes.data(), {kVectors, kLevels}}, scratch);
  for (size_t n = 0; n < kVectors; ++n)
    rvq.encode({&alone[n * kWidth], {1, kWidth}}, {&codes_alone[n * kLevels], {1, kLevels}}, scratch);
  EXPECT_EQ(codes, codes_alone);
  EXPECT_EQ(rests, alone);
}

TEST(Rvq, FirstOfEqualRowsIsTaken) {
  ThreadTeam team(1);
  const std::vector<float> row = random_values(kWidth, 9);
  std::vector<float> book = random_values(kBins * kWidth, 10);
  for (const size_t bin : {11, 40})
    std::copy(row.begin(), row.end(), book.begin() + static_cast<ptrdiff_t>(bin * kWidth));
  const Rvq rvq({book}, kWidth, team);
  std::vector<float> scratch(rvq.scratch_size(1)), rest = row;
  int32_t code = -1;
  const size_t before = allocation_count();
  rvq.encode({rest.data(), {1, kWidth}}, {&code, {1, 1}}, scratch);
  EXPECT_EQ(allocation_count() - before, 0u);
  EXPECT_EQ(code, 11);
  EXPECT_EQ(rest, std::vector<float>(kWidth));
}

TEST(Rvq, FewerCodesSumFewerLevels) {
  const auto books = codebooks();
  const Rvq rvq(books, kWidth);
  const std::vector<int32_t> codes = {4, 44};
  std::vector<float> sum(kWidth);
  rvq.decode(codes, sum);
  for (size_t i = 0; i < kWidth; ++i) EXPECT_EQ(sum[i], 0.0f + books[0][4 * kWidth + i] + books[1][44 * kWidth + i]);
  EXPECT_EQ(rvq.levels(), kLevels);
  EXPECT_EQ(rvq.bins(), kBins);
}

TEST(Rvq, UnusedRowsAreDividedByLeastUsage) {
  const std::vector<float> rows = codebook_rows(std::vector<float>{1, 2, 3, 4}, std::vector<float>{0, 2});
  EXPECT_EQ(rows, (std::vector<float>{1 / 1e-5f, 2 / 1e-5f, 1.5f, 2}));
}

TEST(RvqDeathTest, CodesBeyondBinsAreBugs) {
  const Rvq rvq(codebooks(), kWidth);
  std::vector<float> sum(kWidth);
  const std::vector<int32_t> codes = {static_cast<int32_t>(kBins)};
  EXPECT_DEATH(rvq.decode(codes, sum), "code 45 of 45");
}

}  // namespace
}  // namespace syrinx::nn
