// `syrinx bench qwen3-tts`: the table of a published port's journal, and how long the stages of a frame take alone and
// for several streams.
#pragma once

#include "cli/command.h"

namespace syrinx::bench {

void add_bench_qwen_tts(cli::Command& bench);

}  // namespace syrinx::bench
