// FLAC by libFLAC, for recordings (recording.h).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "audio/recording.h"
#include "base/result.h"

namespace syrinx {

// `file` begins with "fLaC".  Its length and its MD5 sum, where it has them, must hold; what follows is not looked at.
// Errors: as read_recording().
Result<Recording> decode_flac(std::span<const std::byte> file, const std::string& name, const SoundLimits& limits);

}  // namespace syrinx
