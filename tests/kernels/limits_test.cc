#include "kernels/limits.h"

#include "for_each_target.h"

namespace syrinx::kernels {
namespace {

// Short runs: what is tested is which limits exist and that the loops run, not their speed.
TEST(Limits, EachTargetReportsItsLimits) {
  for_each_target([] {
    for (const int threads : {1, 2}) {
      ThreadTeam team(threads);
      const MachineLimits limits = measure_limits(team, {.read_bytes = 1 << 20, .run_seconds = 1e-4, .runs = 2});
      EXPECT_EQ(limits.threads, threads);
      EXPECT_EQ(limits.target, chosen_target_name());
      for (const Limit& limit : {limits.read_gb_per_s, limits.f32_gop_per_s}) {
        EXPECT_GT(limit.one_thread, 0);
        EXPECT_GT(limit.all_threads, 0);
      }
      EXPECT_EQ(limits.int8_dot_gop_per_s.one_thread > 0, use_avx512_vnni() || use_neon_dotprod());
      EXPECT_EQ(limits.bf16_gop_per_s.one_thread > 0, use_avx512_bf16());
      const bool wide = limits.target == "AVX3" || limits.target == "AVX2";
      EXPECT_EQ(limits.int8_exact_gop_per_s.one_thread > 0, wide);
      EXPECT_EQ(limits.int8_7bit_gop_per_s.all_threads > 0, wide);
      EXPECT_EQ(limits.int8_best().one_thread > 0, wide || use_neon_dotprod());
    }
  });
}

TEST(Limits, TinyBuffersAndManyThreads) {
  ThreadTeam team(3);
  EXPECT_GT(measure_limits(team, {.read_bytes = 1, .run_seconds = 1e-5, .runs = 1}).read_gb_per_s.one_thread, 0);
}

}  // namespace
}  // namespace syrinx::kernels
