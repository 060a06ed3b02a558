// `syrinx bench transducer`: the encoder of a FastConformer model, on whole recordings and on streams.
#pragma once

#include "cli/command.h"

namespace syrinx::bench {

void add_bench_transducer(cli::Command& bench);

}  // namespace syrinx::bench
