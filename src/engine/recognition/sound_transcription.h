// A sound of any length and rate through a recogniser, in bounded memory.
#pragma once

#include <functional>
#include <optional>

#include "audio/mono_mixer.h"
#include "base/result.h"
#include "engine/recognition/recogniser.h"

namespace syrinx {

// A sound longer than `longest_s` goes to the recogniser in stretches that end where the last `search_s` of them are
// quietest; what it hears in one is not known in the next, but for the language.
struct StretchLimits {
  double longest_s = 1200;
  double search_s = 60;
};

// Called with seconds done, and how many there are where that is known; false stops (kCancelled).
using SoundProgress = std::function<bool(double done_s, std::optional<double> total_s)>;

// A recording that is cut off is transcribed as far as it is whole, and the transcript has a warning.  Memory: a
// stretch at kRecognitionRateHz.  Errors: the source's and the recogniser's.
Result<Transcript> transcribe_sound(Recogniser& recogniser, const SoundSource& source, const TranscribeOptions& options,
                                    const SoundProgress& progress, const StretchLimits& limits = {});

// The source of one channel of a sound, counted from 0 (SoundLimits::channel); it is read once for each.
using ChannelSource = std::function<SoundSource(int channel)>;

// Each channel of a sound by itself, as the two sides of a telephone call: segments have their channel, and are in
// order of time.  The language is that of the first channel with one, unless options name it; warnings are the first
// channel's.  options.heard is called in order of the channels.
Result<Transcript> transcribe_channels(Recogniser& recogniser, const ChannelSource& source,
                                       const TranscribeOptions& options, const SoundProgress& progress);

// Where a sound is quietest from sample `begin` on: the middle of the 0.3 s with the least energy.  The end, if there
// are not so many samples.
size_t quietest(std::span<const float> sound, size_t begin);

}  // namespace syrinx
