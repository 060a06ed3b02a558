// Sound as it comes, in pieces of any size, to the starts and ends of speech: windows of 512 samples through the
// network, their probabilities through SpeechIterator.  How the sound is cut changes nothing.  One thread; shares the
// weights, borrows the scratch for the call.  A push allocates nothing but room for events.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "models/silero/segments.h"
#include "models/silero/vad.h"

namespace syrinx::silero {

class SpeechDetector {
 public:
  // The options must be valid (segments.h); min_speech_ms counts for last_speech() alone.
  SpeechDetector(std::shared_ptr<const SileroVad> vad, const SegmentOptions& options,
                 Framing framing = Framing::kCarried);

  // Mono, 16 kHz.  Appends what has become known.
  void push(std::span<const float> samples, VadScratch& scratch, std::vector<SpeechEvent>& events);
  // The end of the sound: judges what is left, filled up with silence, and ends an open segment.  Only reset() may
  // follow.
  void flush(VadScratch& scratch, std::vector<SpeechEvent>& events);
  // To the beginning of another recording.
  void reset();

  bool in_speech() const { return iterator_.in_speech(); }
  uint64_t samples() const { return iterator_.samples() + pending_; }  // pushed so far
  uint64_t judged() const { return iterator_.samples(); }              // of them, those in whole windows
  uint64_t last_speech() const { return iterator_.last_speech(); }     // as SpeechIterator
  float probability() const { return probability_; }                   // of the last window; 0 before the first

 private:
  void judge(std::span<const float> samples, VadScratch& scratch, std::vector<SpeechEvent>& events);

  std::shared_ptr<const SileroVad> vad_;
  VadState state_;
  SpeechIterator iterator_;
  std::array<float, kWindowSamples> rest_{};  // samples of a window that is not yet whole
  size_t pending_ = 0;
  float probability_ = 0;
};

}  // namespace syrinx::silero
