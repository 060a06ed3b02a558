// The only door to libFLAC: see encoder.h.
#pragma once

#include <memory>

#include "audio/encode/encoder.h"

namespace syrinx {

Result<std::unique_ptr<AudioEncoder>> make_flac_encoder(const EncoderOptions& options, ByteSink sink);

}  // namespace syrinx
