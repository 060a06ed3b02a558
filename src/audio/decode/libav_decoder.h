// WebM, Matroska, MP4 and AAC by FFmpeg's libraries, for sounds of files (sound_file.h).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "audio/guards/sound_container.h"
#include "audio/mono_mixer.h"
#include "base/result.h"

namespace syrinx {

// Decodes a file for which container_of() returns `container`: its first audio track, coded as AAC, ALAC, FLAC, MP3,
// Opus, Vorbis or PCM; other tracks are skipped.  Only `file` is read, whatever it refers to.  Errors: as read_sound();
// kUnsupported with the remedy where the libraries are missing, or this build is without them (SYRINX_LIBAV).
Status decode_libav(std::span<const std::byte> file, SoundContainer container, const std::string& name,
                    MonoMixer& mixer);

struct Libav;

// The same by these libraries; only where the build has them.
Status decode_libav(const Libav& libav, std::span<const std::byte> file, SoundContainer container,
                    const std::string& name, MonoMixer& mixer);

}  // namespace syrinx
