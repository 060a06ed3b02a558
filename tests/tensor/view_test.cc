#include "tensor/view.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace syrinx {
namespace {

TEST(View, IsRowMajorByDefault) {
  std::vector<float> data(2 * 3 * 4);
  std::iota(data.begin(), data.end(), 0.0f);
  const View<float, 3> view(data.data(), {2, 3, 4});
  EXPECT_EQ(view.size(), 24u);
  EXPECT_EQ(view.stride(0), 12u);
  EXPECT_EQ(view.stride(1), 4u);
  EXPECT_EQ(view.stride(2), 1u);
  EXPECT_EQ(view.extent(1), 3u);
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 0; j < 3; ++j) {
      for (size_t k = 0; k < 4; ++k) EXPECT_EQ(view(i, j, k), data[i * 12 + j * 4 + k]);
    }
  }
  EXPECT_EQ(view.row(1), data.data() + 12);
}

TEST(View, StridesSkip) {
  std::vector<int> data(20);
  std::iota(data.begin(), data.end(), 0);
  const View<int, 2> middle(data.data() + 1, {4, 3}, {5, 1});  // columns 1 to 3 of a 4 x 5 matrix
  EXPECT_EQ(middle(0, 0), 1);
  EXPECT_EQ(middle(3, 2), 18);
  EXPECT_EQ(middle.row(2)[1], 12);
  middle(1, 1) = -1;
  EXPECT_EQ(data[7], -1);
}

TEST(View, MutableBecomesConstant) {
  std::vector<float> data(6);
  const View<float, 2> view(data.data(), {2, 3});
  const View<const float, 2> constant = view;
  EXPECT_EQ(constant.data(), data.data());
  EXPECT_EQ(constant.extent(0), 2u);
  static_assert(!std::is_convertible_v<View<const float, 2>, View<float, 2>>);
}

TEST(View, EmptyExtents) {
  const View<float, 2> none;
  EXPECT_EQ(none.size(), 0u);
  EXPECT_EQ(none.data(), nullptr);
  const View<float, 2> wide(nullptr, {0, 5});
  EXPECT_EQ(wide.size(), 0u);
}

#ifndef NDEBUG
TEST(ViewDeathTest, DebugBuildsCheckIndices) {
  std::vector<float> data(6);
  const View<float, 2> view(data.data(), {2, 3});
  EXPECT_DEATH(view(2, 0), "index 2 of 2 on axis 0");
  EXPECT_DEATH(view(0, 3), "index 3 of 3 on axis 1");
  EXPECT_DEATH(view.row(2), "row 2 of 2");
}
#endif

}  // namespace
}  // namespace syrinx
