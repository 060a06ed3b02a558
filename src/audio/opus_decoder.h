// Ogg Opus by libopusfile, for recordings (recording.h).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "audio/recording.h"
#include "base/result.h"

namespace syrinx {

// What check_ogg_pages() takes for Opus.  At 48 kHz, which is what Opus decodes to; the rate in its header only tells
// what was recorded.  Errors: as read_recording().
Result<Recording> decode_opus(std::span<const std::byte> file, const std::string& name, const SoundLimits& limits);

}  // namespace syrinx
