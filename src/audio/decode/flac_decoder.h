// FLAC by libFLAC, for sounds of files (sound_file.h).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "audio/mono_mixer.h"
#include "base/result.h"

namespace syrinx {

// `file` begins with "fLaC".  Its length and its MD5 sum, where it has them, must hold; what follows is not looked at.
// Errors: as read_sound().
Status decode_flac(std::span<const std::byte> file, const std::string& name, MonoMixer& mixer);

}  // namespace syrinx
