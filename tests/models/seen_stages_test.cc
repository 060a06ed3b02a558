// The comparison that all parity stands on: what it calls equal, and what it must not.
#include "seen_stages.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace syrinx {
namespace {

constexpr double kNothingAlike = std::numeric_limits<double>::infinity();

TEST(LargestDifference, IsAPartOfTheirLargestValue) {
  const std::vector<float> theirs = {1.0f, -4.0f, 2.0f};
  EXPECT_EQ(largest_difference(theirs, theirs), 0.0);
  EXPECT_EQ(largest_difference(std::vector{1.0f, -4.0f, 3.0f}, theirs), 0.25);
  EXPECT_EQ(largest_difference(std::vector{1.0f, -4.0f}, theirs), kNothingAlike);
  EXPECT_EQ(largest_difference(std::vector{1.0f, NAN, 2.0f}, theirs), kNothingAlike);
  for (const float wrong : {NAN, INFINITY}) {
    EXPECT_EQ(largest_difference(theirs, std::vector{1.0f, wrong, 2.0f}), kNothingAlike) << wrong;
    EXPECT_EQ(largest_difference(std::vector{1.0f, wrong, 2.0f}, std::vector{1.0f, wrong, 2.0f}), kNothingAlike)
        << wrong;
  }
  EXPECT_EQ(largest_difference({}, {}), kNothingAlike);
  EXPECT_EQ(largest_difference(std::vector{0.0f}, std::vector{0.0f}), kNothingAlike);
}

// A reference of three rows of two; of a longer stage its rows 0 and 3; one of numbers; one of another type.
class SeenStagesTest : public ::testing::Test {
 protected:
  SeenStagesTest() {
    const auto add = [&](const char* name, DType dtype, std::vector<size_t> dims, const auto& values) {
      tensors_.push_back({name, dtype, std::move(dims), std::as_bytes(std::span(values))});
    };
    add("rows", DType::kF32, {3, 2}, rows_);
    add("thin", DType::kF32, {2, 2}, thin_);
    add("thin.rows", DType::kI32, {2}, kept_);
    add("flat", DType::kF32, {3}, flat_);
    add("whole", DType::kI32, {2}, kept_);
    bytes_ = write_safetensors(tensors_);
    auto parsed = Safetensors::parse(std::as_bytes(std::span(bytes_)), "reference");
    EXPECT_TRUE(parsed.has_value());
    if (parsed) reference_ = std::move(*parsed);
  }
  double only(const SeenStages& seen) const {
    const auto all = seen.differences(reference_);
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? -1 : all[0].worst;
  }

  const std::vector<float> rows_ = {1, 2, 3, 4, 5, 8}, thin_ = {1, 2, 7, 8}, flat_ = {1, 2, 4};
  const std::vector<int32_t> kept_ = {0, 3};
  std::vector<TensorRef> tensors_;
  std::string bytes_;
  Safetensors reference_;
};

TEST_F(SeenStagesTest, RowsOneByOneAndTogether) {
  SeenStages apart, together, padded, fewer, narrow;
  const std::vector<float> longer = {1, 2, 9, 3, 4, 9, 5, 7, 9};
  for (size_t n = 0; n < 3; ++n) apart.add("rows", std::span(rows_).subspan(2 * n, 2));
  together.add("rows", View<const float, 2>{rows_.data(), {3, 2}});
  padded.add("rows", View<const float, 2>{longer.data(), {3, 3}});
  fewer.add("rows", View<const float, 2>{rows_.data(), {2, 2}});
  narrow.add("rows", View<const float, 2>{rows_.data(), {6, 1}});
  EXPECT_EQ(only(apart), 0.0);
  EXPECT_EQ(only(together), 0.0);
  EXPECT_EQ(only(padded), 0.125);
  EXPECT_EQ(only(fewer), kNothingAlike);
  EXPECT_EQ(only(narrow), kNothingAlike);
}

TEST_F(SeenStagesTest, ThinnedRowsAndNumbers) {
  SeenStages all, short_of_one, flat, other;
  const std::vector<float> stage = {1, 2, 0, 0, 0, 0, 7, 8};
  all.add("thin", View<const float, 2>{stage.data(), {4, 2}});
  short_of_one.add("thin", View<const float, 2>{stage.data(), {3, 2}});
  for (const float& value : flat_) flat.add("flat", {&value, 1});
  other.add("whole", flat_);
  EXPECT_EQ(only(all), 0.0);
  EXPECT_EQ(only(short_of_one), kNothingAlike);
  EXPECT_EQ(only(flat), 0.0);
  EXPECT_EQ(only(other), kNothingAlike) << "an array of another type";
}

TEST_F(SeenStagesTest, StagesWithoutReferenceAreLeftOut) {
  SeenStages seen;
  seen.add("unknown", rows_);
  EXPECT_TRUE(seen.differences(reference_).empty());
  EXPECT_EQ(f32_array(reference_, "unknown").error().code, Code::kNotFound);
  EXPECT_EQ(i32_array(reference_, "rows").error().code, Code::kDataLoss);
}

}  // namespace
}  // namespace syrinx
