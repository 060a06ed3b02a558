#include "models/silero/speech_detector.h"

#include <algorithm>

#include "base/check.h"

namespace syrinx::silero {

SpeechDetector::SpeechDetector(std::shared_ptr<const SileroVad> vad, const SegmentOptions& options, Framing framing)
    : vad_(std::move(vad)), state_(framing), iterator_(options) {
  const Status status = validate(options);
  SYRINX_CHECK(status.has_value(), "{}", status.error().message);
}

// Whole windows only.
void SpeechDetector::judge(std::span<const float> samples, VadScratch& scratch, std::vector<SpeechEvent>& events) {
  std::array<float, kWindowsAtOnce> probabilities;
  while (!samples.empty()) {
    const size_t windows = std::min(samples.size() / kWindowSamples, kWindowsAtOnce);
    vad_->step(samples.first(windows * kWindowSamples), state_, scratch, std::span(probabilities).first(windows));
    for (size_t i = 0; i < windows; ++i) iterator_.push(probabilities[i], events);
    probability_ = probabilities[windows - 1];
    samples = samples.subspan(windows * kWindowSamples);
  }
}

void SpeechDetector::push(std::span<const float> samples, VadScratch& scratch, std::vector<SpeechEvent>& events) {
  if (pending_ > 0) {
    const size_t taken = std::min(kWindowSamples - pending_, samples.size());
    std::copy_n(samples.begin(), taken, rest_.begin() + static_cast<ptrdiff_t>(pending_));
    pending_ += taken;
    samples = samples.subspan(taken);
    if (pending_ < kWindowSamples) return;
    pending_ = 0;
    judge(rest_, scratch, events);
  }
  const size_t whole = samples.size() / kWindowSamples * kWindowSamples;
  judge(samples.first(whole), scratch, events);
  pending_ = samples.size() - whole;
  std::copy_n(samples.begin() + static_cast<ptrdiff_t>(whole), pending_, rest_.begin());
}

void SpeechDetector::flush(VadScratch& scratch, std::vector<SpeechEvent>& events) {
  const uint64_t length = samples();
  const size_t told = events.size();
  if (pending_ > 0) {
    std::fill(rest_.begin() + static_cast<ptrdiff_t>(pending_), rest_.end(), 0.0f);
    pending_ = 0;
    judge(rest_, scratch, events);
  }
  iterator_.flush(length, events);
  for (size_t i = told; i < events.size(); ++i) events[i].sample = std::min(events[i].sample, length);
}

void SpeechDetector::reset() {
  state_.reset();
  iterator_.reset();
  pending_ = 0;
  probability_ = 0;
}

}  // namespace syrinx::silero
