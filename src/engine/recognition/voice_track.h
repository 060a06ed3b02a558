// Until when somebody has been speaking in a stream, asked for as the recogniser gets on: it is behind the sound by a
// chunk or by seconds, and its answers must not depend on how the sound was cut.  One thread.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/silero/speech_detector.h"

namespace syrinx {

class VoiceTrack {
 public:
  // The options must be valid (silero::validate()).
  VoiceTrack(std::shared_ptr<const silero::SileroVad> vad, const silero::SegmentOptions& options);

  // Mono, 16 kHz, any number of samples.
  void push(std::span<const float> samples);
  // Where the last voice before `until_s`, seconds of the stream, ended, in whole windows; 0: there was none. `until_s`
  // may only grow, and the sound up to it has been pushed.
  double last_voice_s(double until_s);

 private:
  silero::SpeechDetector detector_;
  silero::VadScratch scratch_;
  std::vector<silero::SpeechEvent> events_;  // of no interest here
  std::vector<silero::SpeechSpan> ahead_;    // voice behind what was asked for, samples
  uint64_t last_voice_ = 0;
};

}  // namespace syrinx
