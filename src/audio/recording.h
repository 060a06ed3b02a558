// A recording of somebody's, in the formats that people keep speech in, as one channel of samples.
//
//   SYRINX_TRY(const Recording recording, read_recording("me.mp3", {.max_seconds = 600}));
//
// WAV (wav.h says which kinds), FLAC, MP3 (MPEG layer III), Ogg with Vorbis or Opus; known by what is in the file, not
// by its name.  An ID3 tag in front is skipped.  The rate is the file's (Opus: the one its header names, made 8, 12,
// 16, 24 or 48 kHz); several channels become their mean, as in the maker's pocket_tts/data/audio_utils.py.
//
// Memory: the samples, at most `limits.max_seconds` of them, once more while they grow, and of a WAV file its channels.
// Pure, thread-safe.  Errors, all naming the recording: kUnsupported (none of these formats; several streams in a row),
// kDataLoss (cut off or damaged: nothing is read by halves), kLimitExceeded; for paths also kNotFound and kIo.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "audio/wav.h"
#include "base/result.h"

namespace syrinx {

inline constexpr size_t kMaxRecordingBytes = size_t{1} << 30;  // of the file

struct Recording {
  int rate_hz = 0;
  std::vector<float> samples;  // [frames], about -1 to 1: lossy formats and files of floats go a little beyond

  double seconds() const { return rate_hz == 0 ? 0 : static_cast<double>(samples.size()) / rate_hz; }
};

Result<Recording> read_recording(const std::string& path, const SoundLimits& limits = {});
// `name` stands in messages.
Result<Recording> read_recording(std::span<const std::byte> file, const std::string& name,
                                 const SoundLimits& limits = {});

}  // namespace syrinx
