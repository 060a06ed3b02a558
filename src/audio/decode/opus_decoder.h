// Ogg Opus by libopusfile, for sounds of files (sound_file.h).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "audio/mono_mixer.h"
#include "base/result.h"

namespace syrinx {

// What check_ogg_pages() takes for Opus.  At 48 kHz, which is what Opus decodes to; the rate in its header only tells
// what was recorded.  Errors: as read_sound().
Status decode_opus(std::span<const std::byte> file, const std::string& name, MonoMixer& mixer);

}  // namespace syrinx
