// Ogg Vorbis by libvorbisfile, for recordings (recording.h).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "audio/recording.h"
#include "base/result.h"

namespace syrinx {

// What check_ogg_pages() takes for Vorbis.  Errors: as read_recording().
Result<Recording> decode_vorbis(std::span<const std::byte> file, const std::string& name, const SoundLimits& limits);

}  // namespace syrinx
