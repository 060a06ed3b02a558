// In place of libav_aac_encoder.cc in a build without FFmpeg's headers.
#include "audio/encode/aac_encoder.h"
#include "audio/libav_missing.h"

namespace syrinx {

// NOLINTNEXTLINE(performance-unnecessary-value-param)
Result<std::unique_ptr<AudioEncoder>> make_aac_encoder(const EncoderOptions& /*options*/, ByteSink /*sink*/) {
  return tl::unexpected(no_aac(built_without_libav()));
}

}  // namespace syrinx
