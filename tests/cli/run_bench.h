// `syrinx bench MODEL ...` in this process.
#pragma once

#include <vector>

#include "cli/command.h"

namespace syrinx::cli {

inline Status run_bench(const char* model, std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), {"syrinx", "bench", model});
  CommandTree tree("syrinx", "");
  Command root = tree.root();
  add_commands(root);
  const Result<Action> action = tree.parse(static_cast<int>(arguments.size()), arguments.data());
  if (!action) return tl::unexpected(action.error());
  return (*action)();
}

}  // namespace syrinx::cli
