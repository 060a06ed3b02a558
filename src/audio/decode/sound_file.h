// A user's audio file, in the common formats of speech, read block by block as one channel.
//
//   SoundSink sink{.begin = [&](int rate_hz, auto frames) { ... }, .add = [&](std::span<const float> block) { ... }};
//   SYRINX_TRY_VOID(read_sound("me.mp3", {.max_seconds = 36000}, sink));
//
// WAV (wav.h says which kinds), FLAC, MP3 (MPEG layer III), Ogg with Vorbis or Opus; whatever is none of these as
// libsndfile reads it: AIFF, AU, CAF with ALAC, W64, RF64, other kinds of WAV and more.  WebM, Matroska, MP4 (m4a),
// AAC, ASF (WMA), AMR and Ogg with FLAC by FFmpeg's libraries, in a child process (child_decoder.h).  Known by what is
// in the file, not by its name.  An ID3 tag in front is skipped.  The rate is the file's (Opus: 48 kHz); several
// channels become their mean, but where they cancel each other (mono_mixer.h).
//
// A recording that is cut off or damaged on its way: with a sink that can be warned it is read as far as it is whole,
// unless that is nothing; MP4 only where its tables stand before the sound, or it was written piece by piece.
//
// Memory: some blocks, whatever the length.  Thread-safe.  Errors, all naming the sound: kUnsupported (none of
// these formats; one whose libraries are missing; several streams in a row), kDataLoss (empty, cut off or damaged,
// floats beyond any scale: an error may come after blocks that were good, so what was made of them must not be taken
// for the whole), kLimitExceeded; for paths also kNotFound and kIo; and what the sink answers.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "audio/mono_mixer.h"
#include "audio/sound_limits.h"
#include "base/result.h"
#include "base/watched_file.h"

namespace syrinx {

Status read_sound(const std::string& path, const SoundLimits& limits, const SoundSink& sink);
// `name` stands in messages.
Status read_sound(std::span<const std::byte> file, const std::string& name, const SoundLimits& limits,
                  const SoundSink& sink);
// The sink, but that no block goes on to it once another program has shortened the file that it was read of, or written
// it anew (WatchedFile::check()); so read_sound() of a path does.  Both must outlive what is returned.
SoundSink while_unchanged(const WatchedFile& file, const SoundSink& sink);

}  // namespace syrinx
