// The encoder of AAC, by FFmpeg's libraries: see encoder.h.
#pragma once

#include <memory>

#include "audio/encode/encoder.h"

namespace syrinx {

// Error for a build or machine without FFmpeg's libraries: `cause` is why.
inline Error no_aac(const Error& cause) {
  return {Code::kUnsupported,
          fmt::format("AAC needs FFmpeg's libraries, and {}; choose mp3, opus, flac, wav or pcm", cause.message)};
}

// kUnsupported with the remedy where the libraries are not there, or this build is without them (libav.h).
Result<std::unique_ptr<AudioEncoder>> make_aac_encoder(const EncoderOptions& options, ByteSink sink);

}  // namespace syrinx
