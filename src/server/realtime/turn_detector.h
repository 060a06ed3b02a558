// Finds where speech begins in a session's audio, and where the turn is over: by voice activity, with the rules of the
// recognisers' own streams.  One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "models/silero/speech_detector.h"
#include "server/realtime/input_config.h"

namespace syrinx::server::realtime {

class TurnDetector {
 public:
  static constexpr double kMinSpeechMs = 100;  // shorter noises begin no turn; as the recognisers' gate has it

  struct Change {
    bool is_start = false;
    uint64_t sample = 0;  // a start: where speech began; an end: where it was known
  };

  // Samples are counted from `first` on.
  TurnDetector(std::shared_ptr<const silero::SileroVad> vad, const TurnDetection& turns, uint64_t first);

  // Samples of the remaining audio to push at once: to the end of a window.
  size_t wanted() const { return silero::kWindowSamples - detector_.samples() % silero::kWindowSamples; }
  // Mono, 16 kHz, at most wanted() samples.
  std::optional<Change> push(std::span<const float> samples);

 private:
  silero::SpeechDetector detector_;
  silero::VadScratch scratch_;
  std::vector<silero::SpeechEvent> events_;
  const uint64_t first_;
  std::optional<uint64_t> start_;  // of speech, whether it is told yet or too short so far
  bool is_told_ = false;
};

}  // namespace syrinx::server::realtime
