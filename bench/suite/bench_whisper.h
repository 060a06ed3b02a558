// `syrinx bench whisper`: how long Whisper's network takes for a window and for a token, beside what this machine could
// do at best, and for recordings.
#pragma once

#include "cli/command.h"

namespace syrinx::bench {

void add_bench_whisper(cli::Command& bench);

}  // namespace syrinx::bench
