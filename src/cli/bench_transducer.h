// `syrinx bench transducer`: the encoder of a FastConformer model, on whole recordings and on streams.
#pragma once

#include "cli/command.h"

namespace syrinx::cli {

void add_bench_transducer(Command& bench);

}  // namespace syrinx::cli
