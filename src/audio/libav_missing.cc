// What a build without FFmpeg's headers has in place of libav_decoder.cc and libav_aac_encoder.cc.
#include "audio/aac_encoder.h"
#include "audio/libav_decoder.h"

namespace syrinx {
namespace {

Error built_without() {
  return {Code::kUnsupported, "this program was built without them (Debian's package libavformat-dev)"};
}

}  // namespace

Status decode_libav(std::span<const std::byte> /*file*/, SoundContainer container, const std::string& name,
                    MonoMixer& /*mixer*/) {
  return tl::unexpected(no_decoder(container, name, built_without()));
}

// NOLINTNEXTLINE(performance-unnecessary-value-param)
Result<std::unique_ptr<AudioEncoder>> make_aac_encoder(const EncoderOptions& /*options*/, ByteSink /*sink*/) {
  return tl::unexpected(no_aac(built_without()));
}

}  // namespace syrinx
