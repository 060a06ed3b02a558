// A user's recording, in the common formats of speech, as one channel of samples.
//
//   SYRINX_TRY(const Recording recording, read_recording("me.mp3", {.max_seconds = 600}));
//
// Reads a whole file by read_sound() (sound_file.h).  Memory: the samples, at most `limits.max_seconds` of them, once
// more while they grow.  Pure, thread-safe.  Errors: as read_sound(); there are no partial results.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "audio/sound_limits.h"
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
