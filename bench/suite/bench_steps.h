// `syrinx bench steps`: for how long each kind of work of a model keeps a live frame waiting.
#pragma once

#include "cli/command.h"

namespace syrinx::bench {

void add_bench_steps(cli::Command& bench);

}  // namespace syrinx::bench
