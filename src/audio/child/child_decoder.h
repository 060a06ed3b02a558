// WebM, Matroska, MP4, AAC, ASF, AMR and Ogg FLAC by FFmpeg's libraries, in a child process with limits
// (docs/decoding.md), for sounds of files (sound_file.h).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "audio/guards/sound_container.h"
#include "audio/mono_mixer.h"
#include "base/result.h"

namespace syrinx {

// Decodes a file for which container_of() returns `container`: its first audio track, coded as AAC, ALAC, AMR, FLAC,
// MP3, Opus, Vorbis, WMA or PCM.  The child gets the file's bytes, never its path.  Thread-safe.  Errors: as
// read_sound(); kUnsupported with the remedy where the program or the libraries are missing, and for a file on which
// the child ends or hangs; kUnavailable where the file is not to blame: no process can be started, it ends before it
// has the file, or is ended from outside.  While the child is waited for, the sink is asked by `looked` ten times a
// second, and its error ends the child.
Status decode_in_child(std::span<const std::byte> file, SoundContainer container, const std::string& name,
                       MonoMixer& mixer);

// From now on one child waits that has loaded the libraries, so that a decoding need not wait for that: for servers.
// Errors: those of await_ready() (decode_talk.h), which decodings will meet, too; a child that says nothing for 2 s is
// not waited for.
Status keep_spare_decoder();
// Ends the one that waits, and keeps none.
void drop_spare_decoder();

}  // namespace syrinx
