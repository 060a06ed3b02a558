// Which instructions the kernels use.  Highway picks the best target that the processor has; SYRINX_CPU or limit_cpu()
// lowers that ceiling.  Our own VNNI, BF16 and dot-product functions (which Highway 1.0.3 does not have) ask the flags
// below, never cpu_info() alone, so that they obey the same limit.
//
// Names, best first: AVX3 AVX3_PLAIN AVX2 SSE4 SSSE3 SCALAR, or SVE2 SVE NEON NEON_PLAIN.  _PLAIN is the same target
// without VNNI and BF16 (AVX3) or without dot product and BF16 (NEON).  A limit above the processor's best changes
// nothing.
//
// Threads: set the limit before the first kernel runs, from one thread.  The flags may be read from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace syrinx::kernels {

// Kernels use no target above `name`; an empty name lifts the limit.  kInvalidArgument when this build has no such
// target.
Status limit_cpu(std::string_view name);
// The same from the environment variable SYRINX_CPU; nothing happens when it is unset or empty.
Status limit_cpu_from_environment();

bool use_avx512_vnni();
bool use_avx512_bf16();
bool use_neon_dotprod();
bool use_neon_bf16();

// The Highway target that kernels run on now: "AVX3", "AVX2", "NEON", ...
std::string chosen_target_name();
// All targets compiled into this binary, best first, whatever the processor has.
std::vector<std::string> built_targets();

// Tests only: exactly this Highway target (0: all that the processor has), and our own extensions used or not.
std::vector<int64_t> usable_targets();  // Highway's bits of the targets both built and had, best first, limit or not
void force_target_for_test(int64_t target, bool extensions);

}  // namespace syrinx::kernels
