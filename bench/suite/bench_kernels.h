// `syrinx bench kernels`: the machine's limits, measured on the spot, and each kernel's share of them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "bench/suite/kernel_cases.h"
#include "cli/command.h"

namespace syrinx::bench {

// Adds `bench` with all that it measures.
void add_bench(cli::Command& tree);

struct BenchKernelsOptions {
  int threads = 0;  // 0: all that this process may run on
  int runs = 9;     // samples of each case, of which the median is reported
  bool json = false;
  std::string only;  // the kernels whose name contains this
};

// Prints to standard output.  kInvalidArgument for a number of threads or runs that makes no sense, kNotFound for a
// kernel that is not there.
Status run_bench_kernels(const BenchKernelsOptions& options);

struct Timing {
  double median_us = 0, min_us = 0, max_us = 0;
};
// Timing of one run of the case, from `runs` samples of at least a few milliseconds each.
Timing time_case(const KernelCase& item, ThreadTeam& team, int runs);

}  // namespace syrinx::bench
