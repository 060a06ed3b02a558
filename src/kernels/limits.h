// Peak rates of this machine, measured on the spot: the yardstick of `syrinx bench kernels` and a line of `syrinx
// doctor`.  One measurement takes about a second and 128 MiB of memory, freed at the end.
//
// Peaks are loops on registers alone, with the widest instructions that the kernels may use now (dispatch.h), the best
// of several short runs.  A multiply-add counts as two operations.  A peak that the target lacks is zero.
#pragma once

#include <cstddef>
#include <string>

#include "base/thread_team.h"

namespace syrinx::kernels {

struct Limit {
  double one_thread = 0;
  double all_threads = 0;
};

struct MachineLimits {
  int threads = 1;            // what all_threads means
  std::string target;         // "AVX3", ...
  Limit read_gb_per_s;        // sequential reads of a working set far beyond the second-level cache
  size_t prefetch_bytes = 0;  // the distance that read fastest, 0: none was best
  Limit f32_gop_per_s;
  Limit bf16_gop_per_s;        // AVX-512 BF16
  Limit int8_dot_gop_per_s;    // u8 x s8 dot products: AVX-512 VNNI or NEON
  Limit int8_exact_gop_per_s;  // multiply-add pairs to 16 bit, widened each time: any u8 x s8 below saturation
  Limit int8_7bit_gop_per_s;   // two such in 16 bit before they are widened: 7-bit weights

  // The fastest exact way to multiply u8 by 7-bit weights here.
  const Limit& int8_best() const {
    return int8_dot_gop_per_s.one_thread > 0 ? int8_dot_gop_per_s : int8_7bit_gop_per_s;
  }
};

struct LimitOptions {
  size_t read_bytes = size_t{128} << 20;
  double run_seconds = 0.010;  // of one run of a peak
  int runs = 5;                // of which the best counts
};

// Runs on the caller's team; nothing else should run meanwhile.
MachineLimits measure_limits(ThreadTeam& team, const LimitOptions& options = {});

}  // namespace syrinx::kernels
