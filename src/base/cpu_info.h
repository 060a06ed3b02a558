// Capabilities of this processor and of the process's share of it, read once.  The flags tell what the hardware has;
// kernels ask kernels/dispatch.h, which also obeys SYRINX_CPU.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace syrinx {

struct CpuInfo {
  std::string model;      // "AMD EPYC ...", as the system names it
  int logical_cores = 1;  // those this process may use: its affinity, or its container's quota where that is less
  bool avx512_vnni = false;
  bool avx512_bf16 = false;
  bool avx512_bf16_fast = false;  // its dot products outrun f32: AMD's do, Intel's take twice the time of f32
  bool neon_dotprod = false;
  bool neon_bf16 = false;
  size_t l2_bytes = 0;  // per core, 0 when unknown
};

const CpuInfo& cpu_info();

// Whole cores that a line of a control group's cpu.max allows, rounded up: "150000 100000" is 2.  0: no limit.
int cores_in_quota(std::string_view cpu_max);

}  // namespace syrinx
