// `syrinx bench vad`: how long voice activity takes, a window at a time as in a stream, and for a whole recording.
#pragma once

#include "cli/command.h"

namespace syrinx::bench {

void add_bench_vad(cli::Command& bench);

}  // namespace syrinx::bench
