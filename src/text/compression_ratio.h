// How repetitive a text is: its bytes divided by those of zlib's compression at its default level, the measure that
// Whisper's temperature fallback uses (openai/whisper, utils.py).  Pure and thread-safe.
#pragma once

#include <string_view>

namespace syrinx::text {

double compression_ratio(std::string_view text);  // 0 for an empty text

}  // namespace syrinx::text
