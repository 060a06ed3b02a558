// Integer peaks on AArch64: the dot-product extension of Armv8.2, behind its own target.
#if defined(__aarch64__)

#include <arm_neon.h>

#include "kernels/cpu/gemm_block.h"
#include "kernels/cpu/limit_loops.h"
#include "kernels/dispatch.h"

#define SYRINX_DOTPROD __attribute__((target("arch=armv8.2-a+dotprod")))

namespace syrinx::kernels {
namespace {

constexpr int kSums = 16;

SYRINX_DOTPROD float dot_neon(size_t iterations) {
  int32x4_t sum[kSums];
  SYRINX_UNROLL
  for (int k = 0; k < kSums; ++k) sum[k] = vdupq_n_s32(k);
  const int8x16_t a = vdupq_n_s8(3), w = vdupq_n_s8(-2);
  for (size_t i = 0; i < iterations; ++i) {
    SYRINX_UNROLL
    for (int32x4_t& s : sum) s = vdotq_s32(s, a, w);
  }
  int32x4_t total = sum[0];
  SYRINX_UNROLL
  for (int k = 1; k < kSums; ++k) total = vaddq_s32(total, sum[k]);
  return static_cast<float>(vgetq_lane_s32(total, 0));
}

}  // namespace

PeakLoop bf16_peak() { return {}; }
PeakLoop int8_dot_peak() { return use_neon_dotprod() ? PeakLoop{dot_neon, 2.0 * 16 * kSums} : PeakLoop{}; }
PeakLoop int8_exact_peak() { return {}; }
PeakLoop int8_7bit_peak() { return {}; }

}  // namespace syrinx::kernels

#endif  // __aarch64__
