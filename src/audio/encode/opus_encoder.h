// The only door to libopus and libogg: see encoder.h.
#pragma once

#include <memory>

#include "audio/encode/encoder.h"

namespace syrinx {

Result<std::unique_ptr<AudioEncoder>> make_opus_encoder(const EncoderOptions& options, ByteSink sink);

}  // namespace syrinx
