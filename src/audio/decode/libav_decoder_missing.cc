// In place of libav_decoder.cc in a build without FFmpeg's headers.
#include "audio/decode/libav_decoder.h"

#include "audio/libav_missing.h"

namespace syrinx {

Status decode_libav(std::span<const std::byte> /*file*/, SoundContainer container, const std::string& name,
                    MonoMixer& /*mixer*/) {
  return tl::unexpected(no_decoder(container, name, built_without_libav()));
}

}  // namespace syrinx
