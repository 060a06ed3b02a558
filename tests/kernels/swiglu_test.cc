#include "kernels/swiglu.h"

#include "for_each_target.h"
#include "tensor/packed_matrix.h"

namespace syrinx::kernels {
namespace {

void run_case(size_t count, Fill fill, float scale) {
  const TestValues pairs(count * 2 * kPanelColumns, 3, fill, scale);
  TestValues out(count * kPanelColumns + 1, 4);
  const float behind = out[count * kPanelColumns];
  swiglu_panels(pairs.data(), count, out.data());
  for (size_t i = 0; i < count * kPanelColumns; ++i) {
    const size_t at = i / kPanelColumns * 2 * kPanelColumns + i % kPanelColumns;
    const double gate = pairs[at], value = pairs[at + kPanelColumns], want = gate / (1.0 + std::exp(-gate)) * value;
    ASSERT_NEAR(out[i], want, 2e-6 * std::abs(gate * value) + FLT_MIN) << i;
  }
  EXPECT_EQ(out[count * kPanelColumns], behind);
}

TEST(Swiglu, MatchesTwinOnPairsOfPanels) {
  for_each_target([] {
    for (const size_t count : {1, 2, 5}) {
      run_case(count, Fill::kNormal, 1.0f);
      run_case(count, Fill::kNormal, 30.0f);
      run_case(count, Fill::kZeros, 1.0f);
      run_case(count, Fill::kDenormal, 1.0f);
    }
  });
}

}  // namespace
}  // namespace syrinx::kernels
