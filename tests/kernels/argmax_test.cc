#include "kernels/argmax.h"

#include <limits>

#include "for_each_target.h"

namespace syrinx::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Argmax, RowsOfEveryLengthAndAlignment) {
  for_each_target([] {
    for (const size_t n : edge_sizes()) {
      for (size_t offset = 0; offset < 3; ++offset) {
        TestValues x(n, static_cast<uint32_t>(n), Fill::kNormal, 1.0f, offset);
        const auto most = std::max_element(x.data(), x.data() + n);
        const Peak peak = argmax({x.data(), n});
        EXPECT_EQ(peak.value, *most);
        EXPECT_EQ(peak.index, static_cast<size_t>(most - x.data()));
      }
    }
  });
}

TEST(Argmax, OfEqualValuesTheFirst) {
  for_each_target([] {
    for (const size_t n : edge_sizes()) {
      for (size_t first = 0; first < n; first += 1 + n / 5) {
        std::vector<float> x(n, -2.0f);
        for (size_t i = first; i < n; i += 3) x[i] = 0.5f;
        EXPECT_EQ(argmax(x).index, first) << n;
      }
      EXPECT_EQ(argmax(std::vector<float>(n, -kInfinity)).index, 0u);
    }
  });
}

TEST(Argmax, ValuesThatAreNotFinite) {
  for_each_target([] {
    for (const size_t n : edge_sizes()) {
      for (const size_t at : {size_t{0}, n / 2, n - 1}) {
        std::vector<float> x(n, 1.0f);
        x[at] = kInfinity;
        EXPECT_EQ(argmax(x).value, kInfinity);
        EXPECT_EQ(argmax(x).index, at);
        x[at] = std::numeric_limits<float>::quiet_NaN();
        EXPECT_TRUE(std::isnan(argmax(x).value)) << n << " " << at;
        EXPECT_EQ(argmax(x).index, 0u);
      }
    }
  });
}

}  // namespace
}  // namespace syrinx::kernels
