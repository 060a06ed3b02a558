// `syrinx bench vad`: how long voice activity takes, a window at a time as in a stream, and for a whole recording.
#pragma once

#include "cli/command.h"

namespace syrinx::cli {

void add_bench_vad(Command& bench);

}  // namespace syrinx::cli
