// A transcript as people and programs read it.  Pure, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "engine/recognition/recogniser.h"
#include "engine/recognition/transcript.h"

namespace syrinx {

enum class TranscriptFormat : uint8_t { kText, kJson, kSrt, kVtt };
enum class TranscriptTimes : uint8_t { kNone, kSegment, kWord, kToken };

Result<TranscriptFormat> parse_transcript_format(std::string_view name);  // "text", "json", "srt", "vtt"
Result<TranscriptTimes> parse_transcript_times(std::string_view name);    // "", "segment", "word", "token"
const char* transcript_ending(TranscriptFormat format);                   // ".txt", ".json", ".srt", ".vtt"

// Limits of a subtitle: two lines of 42 columns for at most seven seconds, as broadcasters have it, and no pause.
struct CueLimits {
  size_t max_columns = 42;
  size_t max_lines = 2;
  double max_seconds = 7;
  double max_pause_s = 1;  // between two of its words
};

struct Cue {
  double start_s = 0, end_s = 0;
  std::vector<std::string> lines;
  std::optional<int> channel{};  // of its segment
  bool operator==(const Cue&) const = default;
};

// A segment cut into cues; where the words' times are not known, they are spread by the words' lengths.  A cue rather
// ends behind a punctuation mark.  kWord, kToken: a cue a word.  Empty text gives none.
std::vector<Cue> make_cues(const TranscriptSegment& segment, TranscriptTimes times, const CueLimits& limits = {});

// Has every cue of a file last, as WebVTT wants it, in milliseconds as they are printed: one of no length takes
// kShortestCueMs, or less up to the next, or else moves the next; none begins before `from_s` or the end of the one
// before, nor do the last ones end behind `until_s` unless one did, or there is less than 1 ms for each.  Where a cue
// lasts already, it stays as it is.
inline constexpr int64_t kShortestCueMs = 100;
void make_cues_last(std::span<Cue> cues, double from_s, double until_s);

// "00:01:02,345" and "00:01:02.345"; to the nearest millisecond, hours of two digits or more.
std::string srt_time(double seconds);
std::string vtt_time(double seconds);
// With the empty line behind.  `number` counts from 1.  A channel is told in front: "[0] ", "<v channel 0>".
std::string srt_cue(size_t number, const Cue& cue);
std::string vtt_cue(const Cue& cue);
inline constexpr std::string_view kVttHeader = "WEBVTT\n\n";

// kNone: the text on one line.  A channel is told as "channel 0: ".  kSegment, kWord, kToken: a line each,
// "[00:00:01.000 --> 00:00:02.500] text".
std::string segment_text(const TranscriptSegment& segment, TranscriptTimes times);
// All of it, as the content of a file.
std::string format_transcript(const Transcript& transcript, TranscriptFormat format, TranscriptTimes times);

// docs/cli.md describes the members.  From kWord on each segment has its words, even where it has none.
Json to_json(const std::vector<std::string>& sentences);
Json to_json(const TranscriptWord& word);
Json to_json(const TranscriptSegment& segment, TranscriptTimes times);
Json to_json(const Transcript& transcript, TranscriptTimes times);
Json to_json(const RecognitionEvent& event, TranscriptTimes times);

}  // namespace syrinx
