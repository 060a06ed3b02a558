// A recording made ready for the encoder (spec pocket-tts.md, section 5.1; the maker's pocket_tts/data/audio_utils.py
// and tts_model.py, get_state_for_audio_prompt): one channel, the codec's rate, an end in silence.  Pure, thread-safe.
//
// Where the maker makes a voice of anything, we refuse what cannot become one: too short, or silent.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "audio/decode/recording.h"
#include "base/result.h"

namespace syrinx::pocket {

inline constexpr double kTruncateSeconds = 30;        // what the maker keeps of an upload and of an exported voice
inline constexpr double kMinRecordingSeconds = 0.25;  // up to the silence at the end: three frames of the codec
inline constexpr double kMaxRecordingSeconds = 480;   // of what is left: kMaxVoicePositions

// A voice must end between two words, or the model goes on with the last one.  Frames of 20 ms at the end that are 35
// dB or more below the loudest one are cut, and a rest shorter than a frame with them; the last 20 ms fade out along a
// straight line, and 80 ms of zeros follow.  A sound shorter than one frame stays as it is.
std::vector<float> end_on_pause(std::span<const float> sound, int rate_hz);

// All of it: the first 30 s if `truncate`, `rate_hz`, a pause.  `name` stands in messages.  kInvalidArgument: no sound,
// silence, too short; kDataLoss: samples far beyond 1; kLimitExceeded: too long, or a rate that cannot be converted.
Result<std::vector<float>> prepare_recording(const Recording& recording, int rate_hz, bool truncate,
                                             const std::string& name);

// The same of a file's bytes, in any format of audio/decode/sound_file.h, with its errors.  If the beginning alone is
// kept, up to an hour is decoded, else up to kMaxRecordingSeconds.  Block by block: what is in memory is at `rate_hz`,
// whatever the file's own rate (at 24 kHz 46 MB, twice that while it grows).
Result<std::vector<float>> read_voice_recording(std::span<const std::byte> file, int rate_hz, bool truncate,
                                                const std::string& name);

}  // namespace syrinx::pocket
