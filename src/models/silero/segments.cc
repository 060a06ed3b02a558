#include "models/silero/segments.h"

#include <algorithm>

namespace syrinx::silero {
namespace {

constexpr uint64_t kWindow = 512;
constexpr double kSamplesPerMs = 16;
constexpr double kHysteresis = 0.15, kLowestNegative = 0.01;
constexpr double kMaxMs = 3'600'000;
constexpr uint64_t kNone = SegmentTrack::kNone;

double max_speech_samples(const SegmentOptions& options) {
  return options.max_speech_s * 1000 * kSamplesPerMs - static_cast<double>(kWindow) -
         2 * options.speech_pad_ms * kSamplesPerMs;
}

bool is_longer(uint64_t begin, uint64_t end, double ms) {
  return static_cast<double>(end) - static_cast<double>(begin) > ms * kSamplesPerMs;
}

uint64_t earlier(uint64_t sample, double by) {
  return static_cast<uint64_t>(std::max(0.0, static_cast<double>(sample) - by));
}

// One window.  The sink is told, in order: opened(start, the least sample that it may be moved to); cut(segment, start
// of the next one or kNone); closed(segment).
template <class Sink>
void advance(const SegmentOptions& options, double negative, double p, SegmentTrack& track, Sink&& sink) {
  const uint64_t at = track.windows++ * kWindow;
  if (p >= options.threshold) {
    if (track.low != kNone && is_longer(track.low, at, options.min_silence_at_max_speech_ms) &&
        at - track.low > track.gap.end - track.gap.begin)
      track.gap = {track.low, at};
    track.low = kNone;
    if (track.start == kNone) {
      track.start = at;
      sink.opened(at, track.floor);
      return;
    }
  }
  if (track.start == kNone) return;
  if (static_cast<double>(at - track.start) > max_speech_samples(options)) {
    const bool has_gap = track.gap.end > track.gap.begin;
    const SpeechSpan segment{track.start, has_gap ? track.gap.begin : at};
    track = {.windows = track.windows, .start = has_gap ? track.gap.end : kNone, .floor = has_gap ? 0 : at};
    sink.cut(segment, track.start);
    if (!has_gap) return;
  }
  if (p >= negative) return;
  if (track.low == kNone) track.low = at;
  if (static_cast<double>(at - track.low) < options.min_silence_ms * kSamplesPerMs) return;
  const SpeechSpan segment{track.start, track.low};
  track = {.windows = track.windows};
  sink.closed(segment);
}

// The segments of a recording before padding.
struct Collector {
  double min_speech_ms;
  std::vector<SpeechSpan> segments = {};

  void opened(uint64_t, uint64_t) {}
  void cut(SpeechSpan segment, uint64_t) { segments.push_back(segment); }
  void closed(SpeechSpan segment) {
    if (is_longer(segment.begin, segment.end, min_speech_ms)) segments.push_back(segment);
  }
};

struct Teller {
  double pad;  // samples
  std::vector<SpeechEvent>& events;

  void opened(uint64_t start, uint64_t floor) {
    events.push_back({SpeechEvent::Kind::kStart, std::max(floor, earlier(start, pad))});
  }
  void closed(SpeechSpan segment) {
    events.push_back({SpeechEvent::Kind::kEnd, segment.end + static_cast<uint64_t>(pad)});
  }
  // Both sides are padded, but meet in the middle of the silence at most.
  void cut(SpeechSpan segment, uint64_t next) {
    if (next == kNone) return events.push_back({SpeechEvent::Kind::kEnd, segment.end});
    const uint64_t share = std::min(static_cast<uint64_t>(pad), (next - segment.end) / 2);
    events.push_back({SpeechEvent::Kind::kEnd, segment.end + share});
    events.push_back({SpeechEvent::Kind::kStart, next - share});
  }
};

void pad_segments(double pad, uint64_t samples, std::vector<SpeechSpan>& segments) {
  const auto later = [&](uint64_t sample) {
    return static_cast<uint64_t>(std::min(static_cast<double>(samples), static_cast<double>(sample) + pad));
  };
  if (segments.empty()) return;
  segments.front().begin = earlier(segments.front().begin, pad);
  segments.back().end = later(segments.back().end);
  for (size_t i = 0; i + 1 < segments.size(); ++i) {
    SpeechSpan &one = segments[i], &next = segments[i + 1];
    const uint64_t gap = next.begin - one.end;
    const bool shared = static_cast<double>(gap) < 2 * pad;
    one.end = shared ? one.end + gap / 2 : later(one.end);
    next.begin = shared ? next.begin - gap / 2 : earlier(next.begin, pad);
  }
}

}  // namespace

double usual_negative_threshold(double threshold) { return std::max(threshold - kHysteresis, kLowestNegative); }

Status validate(const SegmentOptions& options) {
  const auto in_range = [](double value, double least, double greatest) { return value >= least && value <= greatest; };
  if (!in_range(options.threshold, 0, 1) || !in_range(options.negative_threshold.value_or(0), 0, 1))
    return fail(Code::kInvalidArgument, "a threshold of voice activity is a probability, from 0 to 1");
  for (const double ms :
       {options.min_speech_ms, options.min_silence_ms, options.speech_pad_ms, options.min_silence_at_max_speech_ms}) {
    if (!in_range(ms, 0, kMaxMs))
      return fail(Code::kInvalidArgument, "{} ms is not a time for voice activity; take 0 to {:.0f}", ms, kMaxMs);
  }
  if (!(max_speech_samples(options) > 0))
    return fail(Code::kInvalidArgument, "speech of at most {} s leaves nothing beside {} ms of padding on both sides",
                options.max_speech_s, options.speech_pad_ms);
  return {};
}

std::vector<SpeechSpan> speech_segments(std::span<const float> probabilities, uint64_t samples,
                                        const SegmentOptions& options) {
  const double negative = options.negative_threshold.value_or(usual_negative_threshold(options.threshold));
  SegmentTrack track;
  Collector found{options.min_speech_ms};
  for (const float p : probabilities) advance(options, negative, p, track, found);
  if (track.start != kNone) found.closed({track.start, samples});
  pad_segments(options.speech_pad_ms * kSamplesPerMs, samples, found.segments);
  return std::move(found.segments);
}

void SpeechIterator::push(float probability, std::vector<SpeechEvent>& events) {
  const double negative = options_.negative_threshold.value_or(options_.threshold - kHysteresis);
  advance(options_, negative, probability, track_, Teller{options_.speech_pad_ms * kSamplesPerMs, events});
  if (probability >= options_.threshold && in_speech() && is_longer(track_.start, samples(), options_.min_speech_ms))
    last_speech_ = samples();
}

void SpeechIterator::flush(uint64_t samples, std::vector<SpeechEvent>& events) {
  if (in_speech()) events.push_back({SpeechEvent::Kind::kEnd, samples});
  track_ = {.windows = track_.windows};
}

}  // namespace syrinx::silero
