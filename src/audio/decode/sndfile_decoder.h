// Decodes the formats that libsndfile reads and our own readers do not, for sound_file.h.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "audio/mono_mixer.h"
#include "base/result.h"

namespace syrinx {

// AIFF, AU, CAF, W64, RF64 and WAV that announce more bytes than there are, are cut off: libsndfile itself would pass
// over that.  Where their writer did not know the size, the sound reaches to the end (sndfile_sizes.h).  Floats far
// beyond full scale are scaled or refused (float_range.h).  Errors: as read_sound().
Status decode_sndfile(std::span<const std::byte> file, const std::string& name, MonoMixer& mixer);

}  // namespace syrinx
