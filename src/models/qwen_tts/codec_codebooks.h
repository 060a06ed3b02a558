// Codebooks of the codec, which both halves store as sums and usage (spec qwen3-tts.md, section 5.1).  Load time only.
#pragma once

#include <string>
#include <vector>

#include "nn/weight_reader.h"

namespace syrinx::qwen_tts {

// The rows [bins, width] of a codebook.  Empty, and a fault of the reader, where a tensor is not as it should be or a
// row is not finite.
std::vector<float> read_codebook(nn::WeightReader& reader, const std::string& sums, const std::string& usage,
                                 size_t bins, size_t width);

}  // namespace syrinx::qwen_tts
