// Ogg Opus by libopusfile, for sounds of files (sound_file.h).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "audio/mono_mixer.h"
#include "base/result.h"

namespace syrinx {

// Decodes a file that check_ogg_pages() calls Opus, at 48 kHz, Opus's own rate; the rate in its header is only that of
// the original recording.  Errors: as read_sound().
Status decode_opus(std::span<const std::byte> file, const std::string& name, MonoMixer& mixer);

}  // namespace syrinx
