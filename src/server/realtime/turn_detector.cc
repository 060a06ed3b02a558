#include "server/realtime/turn_detector.h"

#include <utility>

namespace syrinx::server::realtime {
namespace {

silero::SegmentOptions rules_of(const TurnDetection& turns) {
  return {.threshold = turns.threshold,
          .negative_threshold = silero::usual_negative_threshold(turns.threshold),
          .min_speech_ms = TurnDetector::kMinSpeechMs,
          .min_silence_ms = turns.silence_ms(),
          .speech_pad_ms = 0};
}

}  // namespace

TurnDetector::TurnDetector(std::shared_ptr<const silero::SileroVad> vad, const TurnDetection& turns, uint64_t first)
    : detector_(std::move(vad), rules_of(turns)), first_(first) {}

std::optional<TurnDetector::Change> TurnDetector::push(std::span<const float> samples) {
  events_.clear();
  detector_.push(samples, scratch_, events_);
  std::optional<Change> change;
  for (const silero::SpeechEvent& event : events_) {
    if (event.kind == silero::SpeechEvent::Kind::kStart) {
      start_ = event.sample;
      continue;
    }
    if (std::exchange(is_told_, false)) change = {.is_start = false, .sample = first_ + detector_.judged()};
    start_.reset();
  }
  if (!start_ || is_told_ || detector_.last_speech() <= *start_) return change;
  is_told_ = true;
  return Change{.is_start = true, .sample = first_ + *start_};
}

}  // namespace syrinx::server::realtime
