// Whisper checkpoints of random numbers with the published shapes, as CTranslate2 stores them in F16 (spec whisper.md,
// sections 2.1 and 3; tools/checkpoints/whisper.py draws others of the same kind).  They cost as much time and memory
// as the real ones, and every stage keeps its values near unit size.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace syrinx::bench {

// "base" first.
std::vector<std::string> random_whisper_names();

// Writes model.bin into `folder`, which is made; a folder that has it is left alone.  The file appears whole or not at
// all.  kInvalidArgument for a name that is none, kIo.
Status make_random_whisper(const std::string& folder, std::string_view name);

}  // namespace syrinx::bench
