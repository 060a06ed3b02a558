// `syrinx bench MODEL ...` in this process.
#pragma once

#include <vector>

#include "bench/suite/bench_kernels.h"
#include "cli/command.h"

namespace syrinx::bench {

inline Status run_bench(const char* model, std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), {"syrinx", "bench", model});
  cli::CommandTree tree("syrinx", "");
  cli::Command root = tree.root();
  add_bench(root);
  const Result<cli::Action> action = tree.parse(static_cast<int>(arguments.size()), arguments.data());
  if (!action) return tl::unexpected(action.error());
  return (*action)();
}

}  // namespace syrinx::bench
