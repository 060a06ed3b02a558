#include "kernels/dispatch.h"

#include <algorithm>
#include <cstdlib>

#include "for_each_target.h"
#include "target_probe.h"

namespace syrinx::kernels {
namespace {

std::string executed_name() {
  const int64_t target = executed_target();
  return (target & (HWY_EMU128 | HWY_SCALAR)) != 0 ? "SCALAR" : hwy::TargetName(target);
}

struct DispatchTest : ::testing::Test {
  void TearDown() override { ASSERT_TRUE(limit_cpu("")); }
};

TEST_F(DispatchTest, ChosenTargetIsAmongTheBuiltOnes) {
  const std::vector<std::string> built = built_targets();
  EXPECT_NE(std::find(built.begin(), built.end(), chosen_target_name()), built.end());
}

TEST_F(DispatchTest, ALimitHoldsForEveryBuiltTarget) {
  const std::vector<std::string> built = built_targets();
  const auto best = std::find(built.begin(), built.end(), chosen_target_name());
  for (auto limit = built.begin(); limit != built.end(); ++limit) {
    ASSERT_TRUE(limit_cpu(*limit)) << *limit;
    // Never above the limit nor above what the processor has; a limit at or above the best changes nothing.
    // Asking Highway or our flags in between must not undo the limit.
    const std::string chosen = chosen_target_name();
    EXPECT_EQ(executed_name(), chosen);
    EXPECT_GE(hwy::SupportedTargets(), 0);
    use_avx512_vnni();
    EXPECT_EQ(executed_name(), chosen);
    EXPECT_GE(std::find(built.begin(), built.end(), chosen), std::max(limit, best)) << *limit << " gave " << chosen;
    if (limit <= best) {
      EXPECT_EQ(chosen, *best);
    }
  }
}

TEST_F(DispatchTest, LowerLimitsSwitchOffOurOwnExtensions) {
  const std::vector<std::string> built = built_targets();
  ASSERT_TRUE(limit_cpu(built.front() == "AVX3" ? "AVX3_PLAIN" : "NEON_PLAIN"));
  EXPECT_FALSE(use_avx512_vnni() || use_avx512_bf16() || use_neon_dotprod() || use_neon_bf16());
  ASSERT_TRUE(limit_cpu(""));
  if (chosen_target_name() == "AVX3") {
    EXPECT_EQ(use_avx512_vnni(), cpu_info().avx512_vnni);
    EXPECT_EQ(use_avx512_bf16(), cpu_info().avx512_bf16);
    ASSERT_TRUE(limit_cpu("AVX2"));
    EXPECT_FALSE(use_avx512_vnni() || use_avx512_bf16());
  }
  EXPECT_EQ(use_neon_dotprod(), cpu_info().neon_dotprod);
  EXPECT_EQ(use_neon_bf16(), cpu_info().neon_bf16);
}

TEST_F(DispatchTest, UnknownNamesAreRefusedWithTheList) {
  for (const char* name : {"AVX9", "avx2", "AVX2_PLAIN", "_PLAIN", " "}) {
    const Status status = limit_cpu(name);
    ASSERT_FALSE(status) << name;
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
    EXPECT_NE(status.error().message.find(built_targets().back()), std::string::npos) << status.error().message;
  }
}

TEST_F(DispatchTest, TheEnvironmentVariableIsObeyed) {
  const std::string lowest = built_targets().back();
  ASSERT_EQ(setenv("SYRINX_CPU", lowest.c_str(), 1), 0);
  ASSERT_TRUE(limit_cpu_from_environment());
  EXPECT_EQ(chosen_target_name(), lowest);
  ASSERT_EQ(setenv("SYRINX_CPU", "nothing", 1), 0);
  EXPECT_FALSE(limit_cpu_from_environment());
  ASSERT_EQ(unsetenv("SYRINX_CPU"), 0);
  EXPECT_TRUE(limit_cpu_from_environment());
}

TEST_F(DispatchTest, TheWalkForcesEachTarget) {
  std::vector<std::string> seen;
  for_each_target([&] {
    seen.push_back(chosen_target_name());
    EXPECT_EQ(executed_name(), chosen_target_name());
  });
  EXPECT_FALSE(seen.empty());
  EXPECT_EQ(seen.front(), chosen_target_name());
}

}  // namespace
}  // namespace syrinx::kernels
