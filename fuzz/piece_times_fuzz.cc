// Any stretches, segments and words: no word is lost, none leaves the recording or the order, no segment lasts through
// a long pause; subtitles made of them last, in order and within their limits.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "engine/recognition/piece_times.h"
#include "engine/recognition/transcript_format.h"
#include "models/silero/vad.h"

namespace {

using syrinx::Cue;
using syrinx::SpeechPiece;
using syrinx::Transcript;
using syrinx::TranscriptSegment;

constexpr double kRate = syrinx::silero::kSampleRateHz;
constexpr double kExact = 1e-6;

class Bytes {
 public:
  explicit Bytes(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  size_t next() {
    if (bytes_.empty()) return 0;
    const uint8_t byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte;
  }
  double seconds() { return static_cast<double>(next()) / 20; }

 private:
  std::span<const uint8_t> bytes_;
};

SpeechPiece make_piece(Bytes& bytes) {
  SpeechPiece piece;
  piece.pad_s = static_cast<double>(bytes.next() % 5) / 10;
  uint64_t at = 0;
  for (size_t count = 1 + bytes.next() % 6; count > 0; --count) {
    const uint64_t begin = at + bytes.next() * 800, end = begin + (1 + bytes.next()) * 400;
    piece.spans.push_back({begin, end});
    at = end;
  }
  return piece;
}

// Words in order of time, as recognisers give them; a segment's own times say anything.
TranscriptSegment make_segment(Bytes& bytes, double& at_s) {
  constexpr std::array<const char*, 8> kTexts = {"one",    "No.",    "-ill",    "%",
                                                 "\u6211", "\u3002", "t\u00E9", "\u0E44\u0E17"};
  TranscriptSegment segment;
  segment.start_s = bytes.seconds();
  segment.end_s = segment.start_s + bytes.seconds();
  for (size_t count = bytes.next() % 8; count > 0; --count) {
    const size_t kind = bytes.next();
    const double start_s = at_s + static_cast<double>(kind >> 4) / 10;
    at_s = start_s + bytes.seconds();
    segment.words.push_back({.text = kTexts[kind % 8], .start_s = start_s, .end_s = at_s, .spaced = (kind & 8) == 0});
    segment.words.back().tokens = {static_cast<int32_t>(kind)};
    segment.words.back().timed_tokens = {{.text = {}, .start_s = start_s, .end_s = at_s}};
    segment.tokens.push_back(static_cast<int32_t>(kind));
    append_word(segment.text, segment.words.back());
  }
  if (segment.words.empty()) segment.text = "without words";
  return segment;
}

// Seconds that were left out between two times of the recording.
double left_out(const SpeechPiece& piece, double from_s, double until_s) {
  double sum = 0;
  for (size_t i = 1; i < piece.spans.size(); ++i) {
    const double begin_s = static_cast<double>(piece.spans[i - 1].end) / kRate;
    const double end_s = static_cast<double>(piece.spans[i].begin) / kRate;
    if (begin_s >= from_s - kExact && end_s <= until_s + kExact) sum += end_s - begin_s;
  }
  return sum;
}

void check_times(const SpeechPiece& piece, const std::vector<TranscriptSegment>& segments) {
  const double begin_s = static_cast<double>(piece.spans.front().begin) / kRate - kExact;
  const double end_s = static_cast<double>(piece.spans.back().end) / kRate + kExact;
  const auto check = [&](const auto& part) {
    SYRINX_CHECK(begin_s <= part.start_s && part.start_s <= part.end_s && part.end_s <= end_s);
  };
  double last_s = 0;
  for (const TranscriptSegment& segment : segments) {
    check(segment);
    for (size_t i = 0; i < segment.words.size(); ++i) {
      const syrinx::TranscriptWord& word = segment.words[i];
      check(word);
      check(word.timed_tokens.front());
      SYRINX_CHECK(word.start_s >= last_s - kExact);
      last_s = word.start_s;
      if (i > 0 && word.spaced)
        SYRINX_CHECK(left_out(piece, segment.words[i - 1].end_s, word.start_s) <=
                     syrinx::PieceTimes::kLongPauseS + kExact);
    }
  }
}

int64_t milliseconds(double seconds) { return std::llround(seconds * 1000); }

void check_cues(const std::vector<TranscriptSegment>& segments, syrinx::TranscriptTimes times, double from_s,
                double until_s) {
  std::vector<Cue> cues;
  for (const TranscriptSegment& segment : segments)
    std::ranges::move(make_cues(segment, times), std::back_inserter(cues));
  std::vector<Cue> lasting = cues;
  make_cues_last(lasting, from_s, until_s);
  int64_t earliest = milliseconds(from_s);
  int64_t latest = std::max(milliseconds(until_s), earliest + static_cast<int64_t>(cues.size()));
  for (const Cue& cue : cues) latest = std::max(latest, milliseconds(cue.end_s));
  for (size_t i = 0; i < cues.size(); ++i) {
    SYRINX_CHECK(lasting[i].lines == cues[i].lines && !cues[i].lines.empty() && cues[i].lines.size() <= 2);
    SYRINX_CHECK(milliseconds(lasting[i].start_s) >= earliest);
    earliest = milliseconds(lasting[i].end_s);
    SYRINX_CHECK(milliseconds(lasting[i].start_s) < earliest && earliest <= latest);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes({data, size});
  const SpeechPiece piece = make_piece(bytes);
  const double from_s = bytes.seconds(), until_s = bytes.seconds();
  std::vector<TranscriptSegment> segments;
  for (double at_s = 0; !bytes.empty();) segments.push_back(make_segment(bytes, at_s));
  const syrinx::PieceTimes times(piece);
  const Transcript before{.language = "", .audio_s = 0, .segments = segments};
  const std::vector<size_t> stretches = times.stretches_of(piece_words(segments));
  SYRINX_CHECK(std::ranges::is_sorted(stretches));
  const Transcript placed{.language = "", .audio_s = 0, .segments = times.in_recording(segments, stretches)};
  SYRINX_CHECK(placed.text() == before.text());
  std::vector<int32_t> tokens, placed_tokens;
  for (const TranscriptSegment& segment : segments)
    tokens.insert(tokens.end(), segment.tokens.begin(), segment.tokens.end());
  for (const TranscriptSegment& segment : placed.segments)
    placed_tokens.insert(placed_tokens.end(), segment.tokens.begin(), segment.tokens.end());
  SYRINX_CHECK(tokens == placed_tokens);
  check_times(piece, placed.segments);
  for (const auto kind : {syrinx::TranscriptTimes::kSegment, syrinx::TranscriptTimes::kWord})
    check_cues(placed.segments, kind, from_s, until_s);
  return 0;
}
