// Ogg Vorbis by libvorbisfile, for sounds of files (sound_file.h).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "audio/mono_mixer.h"
#include "base/result.h"

namespace syrinx {

// Decodes a file that check_ogg_pages() calls Vorbis.  Errors: as read_sound().
Status decode_vorbis(std::span<const std::byte> file, const std::string& name, MonoMixer& mixer);

}  // namespace syrinx
