// `syrinx bench pocket-tts`: how long the model takes to begin, to speak and to learn a voice, beside what this machine
// could do at best.
#pragma once

#include "cli/command.h"

namespace syrinx::bench {

void add_bench_pocket_tts(cli::Command& bench);

}  // namespace syrinx::bench
