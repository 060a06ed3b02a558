// `syrinx bench kokoro`: how long the model takes for a text, piece by piece, beside nothing else.
#pragma once

#include "cli/command.h"

namespace syrinx::cli {

void add_bench_kokoro(Command& bench);

}  // namespace syrinx::cli
