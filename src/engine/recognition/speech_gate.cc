#include "engine/recognition/speech_gate.h"

#include <algorithm>

#include "engine/recognition/quiet_level.h"

namespace syrinx {
namespace {

using silero::SpeechSpan;

constexpr double kRate = silero::kSampleRateHz;

}  // namespace

Result<silero::SegmentOptions> VoiceActivityChanges::apply(silero::SegmentOptions options) const {
  options.threshold = threshold.value_or(options.threshold);
  // For streams, too: with the maker's rule for streams, speech beyond a threshold of 0.15 or less never ends.
  if (threshold) options.negative_threshold = silero::usual_negative_threshold(*threshold);
  options.min_speech_ms = min_speech_ms.value_or(options.min_speech_ms);
  options.min_silence_ms = min_silence_ms.value_or(options.min_silence_ms);
  options.speech_pad_ms = speech_pad_ms.value_or(options.speech_pad_ms);
  SYRINX_TRY_VOID(silero::validate(options));
  return options;
}

uint64_t SpeechPiece::samples() const {
  uint64_t sum = 0;
  for (const SpeechSpan& span : spans) sum += span.end - span.begin;
  return sum;
}

std::vector<float> SpeechPiece::sound(std::span<const float> recording) const {
  std::vector<float> joined;
  joined.reserve(samples());
  for (const SpeechSpan& span : spans) {
    const auto part = recording.subspan(span.begin, span.end - span.begin);
    joined.insert(joined.end(), part.begin(), part.end());
  }
  return joined;
}

double SpeechPiece::end_in_recording(double piece_s) const {
  double left = std::max(0.0, piece_s) * kRate;
  for (const SpeechSpan& span : spans) {
    const double length = static_cast<double>(span.end - span.begin);
    if (left <= length) return (static_cast<double>(span.begin) + left) / kRate;
    left -= length;
  }
  return spans.empty() ? piece_s : static_cast<double>(spans.back().end) / kRate;
}

std::vector<SpeechPiece> join_spans(std::span<const SpeechSpan> spans, double max_piece_s) {
  const auto limit = static_cast<uint64_t>(std::max(1.0, max_piece_s * kRate));
  std::vector<SpeechPiece> pieces;
  uint64_t room = 0;
  for (SpeechSpan span : spans) {
    // A stretch that does not fit begins a new piece; only one that fits nowhere is cut.
    if (span.end - span.begin > room) room = 0;
    while (span.begin < span.end) {
      if (room == 0) {
        pieces.emplace_back();
        room = limit;
      }
      const uint64_t taken = std::min(room, span.end - span.begin);
      pieces.back().spans.push_back({span.begin, span.begin + taken});
      span.begin += taken;
      room -= taken;
    }
  }
  return pieces;
}

Result<SpeechGate> SpeechGate::load(const std::string& path, const GateOptions& options) {
  SYRINX_TRY_VOID(silero::validate(options.segments));
  if (!(options.max_piece_s > 0 && options.max_piece_s <= 3600))
    return fail(Code::kInvalidArgument, "pieces of {} s make no sense; take more than 0, at most 3600",
                options.max_piece_s);
  SYRINX_TRY(auto vad, silero::SileroVad::load(path));
  return SpeechGate(std::move(vad), options);
}

std::vector<SpeechPiece> SpeechGate::pieces(std::span<const float> recording,
                                            const silero::SegmentOptions& segments) const {
  return *pieces(recording, segments, {});
}

Result<std::vector<SpeechPiece>> SpeechGate::pieces(std::span<const float> recording,
                                                    const silero::SegmentOptions& segments,
                                                    const std::function<bool()>& is_wanted,
                                                    const std::function<void()>& between) const {
  const std::vector<float> probabilities = silero::speech_probabilities(*vad_, recording, silero::Framing::kCarried,
                                                                        is_wanted, between, quiet_gain(recording));
  if (probabilities.empty() && !recording.empty())
    return fail(Code::kCancelled, "stopped while the speech of a recording was looked for");
  std::vector<SpeechPiece> pieces =
      join_spans(silero::speech_segments(probabilities, recording.size(), segments), options_.max_piece_s);
  for (SpeechPiece& piece : pieces) piece.pad_s = segments.speech_pad_ms / 1000;
  return pieces;
}

Result<std::optional<silero::SegmentOptions>> speech_rules(const std::optional<SpeechGate>& gate, bool wanted,
                                                           const VoiceActivityChanges& changes) {
  if (!wanted && changes.any())
    return fail(Code::kInvalidArgument,
                "voice activity is switched off, so nothing can be set about it; leave out the one or the other");
  if (!wanted) return std::nullopt;
  if (gate) return changes.apply(gate->options().segments);
  if (changes.any())
    return fail(Code::kNotFound,
                "no voice activity model is there, so nothing can be set about it; `syrinx pull silero-vad`");
  return std::nullopt;
}

}  // namespace syrinx
