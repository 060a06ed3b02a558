// Sound that comes as bytes through a pipe: a WAV file whose head says what it is, or raw samples.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "audio/float_range.h"
#include "audio/mono_mixer.h"
#include "audio/wav.h"
#include "base/result.h"

namespace syrinx {

// "s16", "f32" (little endian), "mulaw", "alaw".  The rate and the channels are left at 0.
Result<PcmFormat> parse_pcm_format(std::string_view name);

class PcmStream {
 public:
  // Raw samples of `format`, or nothing: a WAV file.  `name` stands in messages; all must outlive the stream.
  PcmStream(std::optional<PcmFormat> format, const std::string& name, const SoundLimits& limits, const SoundSink& sink);

  // Any number of bytes.  Floats far beyond full scale that no scale fits (float_range.h) are clipped where the sink
  // can be warned of it, once, else an error.  Memory: a head of at most 1 MiB, then what was pushed.  Errors: as
  // read_wav(), and the sink's.
  Status push(std::span<const std::byte> bytes);
  // The end of the sound: what waits for more of it (mono_mixer.h) goes on.  Nothing may be pushed afterwards.
  Status flush();
  // The same; kDataLoss when no sound has come; a sample that is not whole is left out, and the sink is warned of a WAV
  // file that is cut off.
  Status finish();

 private:
  Status begin(bool is_whole);
  Status decode();
  Status decode_waiting(bool is_whole);

  const std::string& name_;
  const SoundLimits& limits_;
  const SoundSink& sink_;
  MonoMixer mixer_;
  FloatRange range_;
  std::optional<PcmFormat> format_;
  bool begun_ = false, clips_ = false;
  std::vector<std::byte> bytes_;  // that have not been decoded
  std::vector<float> block_;
  uint64_t left_ = UINT64_MAX;  // bytes of sound to come; what a file has behind them is no sound
};

}  // namespace syrinx
