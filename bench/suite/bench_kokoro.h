// `syrinx bench kokoro`: how long the model takes for a text, piece by piece, beside nothing else.
#pragma once

#include "cli/command.h"

namespace syrinx::bench {

void add_bench_kokoro(cli::Command& bench);

}  // namespace syrinx::bench
