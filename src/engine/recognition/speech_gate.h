// Leaves silence out before recognition: voice activity finds the speech of a recording, its stretches are joined to
// pieces of at most a window's length (spec whisper.md, section 6).  A gap shrinks to its two paddings; a recording
// without speech gives no piece.
//
// Immutable, thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/silero/segments.h"
#include "models/silero/vad.h"

namespace syrinx {

// Stretches of a recording, one behind the other: what is decoded as one sound.
struct SpeechPiece {
  std::vector<silero::SpeechSpan> spans;  // samples at 16 kHz, in order, without overlap, none empty
  double pad_s = 0;                       // of silence that a stretch keeps on both sides

  uint64_t samples() const;
  // The sound of the piece, out of the whole recording's.
  std::vector<float> sound(std::span<const float> recording) const;
  // Seconds of the piece that are done as seconds of the recording: where two stretches meet, the end of the first.
  // piece_times.h places segments and words.
  double end_in_recording(double piece_s) const;
};

// A caller's changes; the other values stay the recogniser's.
struct VoiceActivityChanges {
  std::optional<double> threshold = {}, min_speech_ms = {}, min_silence_ms = {}, speech_pad_ms = {};

  bool any() const { return threshold || min_speech_ms || min_silence_ms || speech_pad_ms; }
  Result<silero::SegmentOptions> apply(silero::SegmentOptions options) const;  // the errors of silero::validate()
};

// Whisper's window, and what it likes around speech.
struct GateOptions {
  double max_piece_s = 30;
  silero::SegmentOptions segments = {
      .min_speech_ms = 100, .max_speech_s = 30, .min_silence_ms = 1000, .speech_pad_ms = 400};
};

// In order; each as full as the next stretch allows.  A stretch that is longer than a piece fills several.
std::vector<SpeechPiece> join_spans(std::span<const silero::SpeechSpan> spans, double max_piece_s);

class SpeechGate {
 public:
  // `path`: Silero's file.  Errors: those of SileroVad::load(), and of silero::validate().
  static Result<SpeechGate> load(const std::string& path, const GateOptions& options = {});

  // The stretches of speech in mono sound at 16 kHz, joined.  A very quiet recording is raised for this alone
  // (quiet_level.h).
  std::vector<SpeechPiece> pieces(std::span<const float> recording) const {
    return pieces(recording, options_.segments);
  }
  // By other rules than its own, which must be valid.
  std::vector<SpeechPiece> pieces(std::span<const float> recording, const silero::SegmentOptions& segments) const;
  // Likewise, for somebody who may leave meanwhile: `is_wanted` is asked before each minute of sound, on this thread,
  // and kCancelled the end where it says no.  Empty: always.  `between` is called every few milliseconds: the work is
  // one thread's, and runs in turns of a team that has all cores.  Empty: never.
  Result<std::vector<SpeechPiece>> pieces(std::span<const float> recording, const silero::SegmentOptions& segments,
                                          const std::function<bool()>& is_wanted,
                                          const std::function<void()>& between = {}) const;

  // For a stream's own SpeechDetector.
  const std::shared_ptr<const silero::SileroVad>& vad() const { return vad_; }
  const GateOptions& options() const { return options_; }

 private:
  SpeechGate(std::shared_ptr<const silero::SileroVad> vad, const GateOptions& options)
      : vad_(std::move(vad)), options_(options) {}

  std::shared_ptr<const silero::SileroVad> vad_;
  GateOptions options_;
};

// By which rules a recogniser with this gate finds speech: the gate's, with the changes; nothing without a gate or
// where voice activity is not wanted.  Changes that nothing would heed: kNotFound where there is no gate,
// kInvalidArgument where none is wanted.
Result<std::optional<silero::SegmentOptions>> speech_rules(const std::optional<SpeechGate>& gate, bool wanted,
                                                           const VoiceActivityChanges& changes);

}  // namespace syrinx
