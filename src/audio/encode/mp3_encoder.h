// The only door to libmp3lame: see encoder.h.
#pragma once

#include <memory>

#include "audio/encode/encoder.h"

namespace syrinx {

Result<std::unique_ptr<AudioEncoder>> make_mp3_encoder(const EncoderOptions& options, ByteSink sink);

}  // namespace syrinx
