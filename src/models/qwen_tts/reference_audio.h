// A reference recording made ready for cloning: one channel, the model's rate, no silence at its ends, and then silence
// of a stated length, so that what is spoken does not begin with the recording's last sound (spec qwen3-tts.md, section
// 10.3, "reference tail").  The maker takes recordings as they are: without trim and silence so does this.
//
// The maker makes a voice of anything; refused here is sound that cannot become one.  Pure, thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "audio/decode/recording.h"
#include "base/result.h"

namespace syrinx::qwen_tts {

inline constexpr double kMinReferenceSeconds = 0.5;  // without the silence at its ends, if that is trimmed
inline constexpr double kMaxReferenceSeconds = 60;   // as it comes
inline constexpr double kMaxReferenceSilence = 2;    // seconds

struct ReferenceOptions {
  bool trim = true;
  double silence_s = 0.5;  // appended: 0 to kMaxReferenceSilence
};

struct ReferenceAudio {
  std::vector<float> samples;  // all of it, for the codec
  size_t sound_samples = 0;    // before the appended silence
  // For the speaker encoder, whose statistics silence would change.
  std::span<const float> sound() const { return {samples.data(), sound_samples}; }
};

// From the first to the last 20 ms that are less than 40 dB below the third-loudest ones, and 40 ms on either side: a
// click, of two frames at most, does not make speech silence.  Levels are about a frame's mean.
std::span<const float> without_silence(std::span<const float> sound, int rate_hz);

// `name` stands in messages.  kInvalidArgument: no sound, silence, too short, options out of range; kDataLoss: samples
// that are no numbers or far beyond 1; kLimitExceeded: too long, or a rate that cannot be converted.
Result<ReferenceAudio> prepare_reference(const Recording& recording, int rate_hz, const ReferenceOptions& options,
                                         const std::string& name);
// The same of a file's bytes, in any format of audio/decode/sound_file.h, with its errors.  Memory: what has
// `rate_hz`, up to three times while it grows and is cut: 18 MB for a minute at 24 kHz, of which 6 MB stay.
Result<ReferenceAudio> read_reference(std::span<const std::byte> file, int rate_hz, const ReferenceOptions& options,
                                      const std::string& name);

}  // namespace syrinx::qwen_tts
