#include "engine/recognition/voice_track.h"

#include <algorithm>

namespace syrinx {
namespace {

using silero::kWindowSamples;

// Every second window of the 121 s that a recogniser lags at most, a window of a stream and a second that is pushed.
constexpr size_t kReservedSpans = 2048;
constexpr size_t kReservedEvents = 8;  // of one window

}  // namespace

VoiceTrack::VoiceTrack(std::shared_ptr<const silero::SileroVad> vad, const silero::SegmentOptions& options)
    : detector_(std::move(vad), options) {
  ahead_.reserve(kReservedSpans);
  events_.reserve(kReservedEvents);
}

// Window by window, as each may end a little more voice.
void VoiceTrack::push(std::span<const float> samples) {
  while (!samples.empty()) {
    const size_t wanted = kWindowSamples - detector_.samples() % kWindowSamples;
    const size_t taken = std::min(wanted, samples.size());
    const uint64_t before = detector_.last_speech();
    events_.clear();
    detector_.push(samples.first(taken), scratch_, events_);
    samples = samples.subspan(taken);
    const uint64_t now = detector_.last_speech();
    if (now == before) continue;
    if (!ahead_.empty() && ahead_.back().end + kWindowSamples == now)
      ahead_.back().end = now;
    else
      ahead_.push_back({now - kWindowSamples, now});
  }
}

double VoiceTrack::last_voice_s(double until_s) {
  const auto until = static_cast<uint64_t>(std::max(0.0, until_s) * silero::kSampleRateHz);
  const uint64_t judged = until / kWindowSamples * kWindowSamples;
  size_t gone = 0;
  for (; gone < ahead_.size() && ahead_[gone].begin < judged; ++gone) {
    last_voice_ = std::min(ahead_[gone].end, judged);
    if (ahead_[gone].end > judged) break;
  }
  ahead_.erase(ahead_.begin(), ahead_.begin() + static_cast<ptrdiff_t>(gone));
  return static_cast<double>(last_voice_) / silero::kSampleRateHz;
}

}  // namespace syrinx
