// From probabilities to stretches of speech, by the maker's rules (spec silero-vad.md, section 5; utils_vad.py of
// silero-vad 6.2.3): speech_segments() for a whole recording, SpeechIterator for a stream.  Pure arithmetic on sample
// numbers at 16 kHz; a probability stands for a window of 512 samples.
//
// A window at or above `threshold` is speech and opens a segment.  One below the negative threshold begins a silence,
// which closes the segment when it lasts min_silence_ms; one between the two changes nothing.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"

namespace syrinx::silero {

// The maker's parameters and defaults.  For dictation 400 to 600 ms of min_silence_ms serve well; before a recogniser,
// 200 to 400 ms of speech_pad_ms.
struct SegmentOptions {
  double threshold = 0.5;
  std::optional<double> negative_threshold = {};  // absent: threshold - 0.15; for whole recordings at least 0.01
  double min_speech_ms = 250;                     // shorter segments are dropped; whole recordings only
  double max_speech_s = std::numeric_limits<double>::infinity();  // longer segments are cut, see below
  double min_silence_ms = 100;               // in effect rounded up to whole windows: silences begin with windows
  double speech_pad_ms = 30;                 // added on both sides
  double min_silence_at_max_speech_ms = 98;  // silences longer than this are places to cut
};

// A window's probability below which a silence may begin, as whole recordings have it.
double usual_negative_threshold(double threshold);

// kInvalidArgument for thresholds outside 0 to 1, times that are negative, no numbers or over an hour (but max_speech_s
// may be infinite), and a max_speech_s that the padding and a window use up.
Status validate(const SegmentOptions& options);

struct SpeechSpan {
  uint64_t begin = 0, end = 0;  // samples, the end excluded
  bool operator==(const SpeechSpan&) const = default;
};

// In order, without overlap, inside [0, samples].  A segment longer than max_speech_s ends at the beginning of its
// longest silence of more than min_silence_at_max_speech_ms, and the next begins at that silence's end; without such a
// silence it is cut where it stands.  Where two segments lie closer than twice the padding, they share the gap.
// `samples` is the recording's length: the last window may lie partly beyond it.
std::vector<SpeechSpan> speech_segments(std::span<const float> probabilities, uint64_t samples,
                                        const SegmentOptions& options);

struct SpeechEvent {
  enum class Kind : uint8_t { kStart, kEnd };
  Kind kind = Kind::kStart;
  uint64_t sample = 0;
  bool operator==(const SpeechEvent&) const = default;
};

// Where the rules stand in a recording.
struct SegmentTrack {
  static constexpr uint64_t kNone = ~uint64_t{0};

  uint64_t windows = 0;    // judged
  uint64_t start = kNone;  // of the open segment
  uint64_t low = kNone;    // of the silence that may close it
  SpeechSpan gap = {};     // its longest silence that is over and long enough to cut at; empty: none
  uint64_t floor = 0;      // where the segment before was cut without a silence; padding does not reach before it
};

// The same as it comes.  A start is told with the window that opens the segment, before min_speech_ms could be known:
// who must not see blips waits.  An end is told min_silence_ms after the silence began.  With a padding of more than
// half of min_silence_ms a start may lie before the end that was told before it.  Events are appended, at most three a
// call.
class SpeechIterator {
 public:
  explicit SpeechIterator(const SegmentOptions& options) : options_(options) {}

  void push(float probability, std::vector<SpeechEvent>& events);
  // The end of the sound: an open segment ends at its true length.  Only reset() may follow.
  void flush(uint64_t samples, std::vector<SpeechEvent>& events);
  void reset() { *this = SpeechIterator(options_); }

  bool in_speech() const { return track_.start != SegmentTrack::kNone; }
  uint64_t samples() const { return track_.windows * 512; }  // judged so far
  // Where the last window of a segment that has lasted min_speech_ms ended; 0: there was none.
  uint64_t last_speech() const { return last_speech_; }

 private:
  SegmentOptions options_;
  SegmentTrack track_;
  uint64_t last_speech_ = 0;
};

}  // namespace syrinx::silero
