// MP3 (MPEG-1, -2 and -2.5, layer III) by libmpg123, for sounds of files (sound_file.h).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "audio/mono_mixer.h"
#include "base/result.h"

namespace syrinx {

// Whether an MP3 stream begins within the first 64 KiB: three frame headers of one kind, each where the one before
// says.
bool looks_like_mp3(std::span<const std::byte> file);

// Decodes a file that looks_like_mp3() accepts.  The encoder's padding is cut off where the file's tag gives its
// length. Rubbish between frames is skipped.  Errors: as read_sound().
Status decode_mp3(std::span<const std::byte> file, const std::string& name, MonoMixer& mixer);

}  // namespace syrinx
