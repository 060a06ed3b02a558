#include "engine/recognition/piece_times.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "models/silero/vad.h"
#include "text/unicode.h"

namespace syrinx {
namespace {

constexpr double kRate = silero::kSampleRateHz;
constexpr double kInaccuracyS = 0.1;  // of a word's beginning

// Takes the words from `begin` to `end` of a segment with their text and tokens.
TranscriptSegment part_of(const TranscriptSegment& whole, size_t begin, size_t end) {
  TranscriptSegment part;
  part.confidence = whole.confidence;
  part.window = whole.window;
  part.channel = whole.channel;
  part.spaced = begin == 0 ? whole.spaced : whole.words[begin].spaced;
  part.words.assign(whole.words.begin() + static_cast<ptrdiff_t>(begin),
                    whole.words.begin() + static_cast<ptrdiff_t>(end));
  for (const TranscriptWord& word : part.words) {
    append_word(part.text, word);
    part.tokens.insert(part.tokens.end(), word.tokens.begin(), word.tokens.end());
  }
  part.start_s = part.words.front().start_s;
  part.end_s = part.words.back().end_s;
  if (begin == 0) part.start_s = whole.start_s;
  if (end == whole.words.size()) part.end_s = whole.end_s;
  return part;
}

// Scripts that write no blanks between words, with their punctuation: Thai to Burmese, Khmer, Chinese and Japanese.
bool is_of_blankless_script(char32_t c) {
  constexpr struct {
    char32_t first, last;
  } kBlocks[] = {{0x0E00, 0x109F}, {0x1780, 0x17FF}, {0x2E80, 0xA4CF},  {0xF900, 0xFAFF},
                 {0xFE30, 0xFE4F}, {0xFF00, 0xFFEF}, {0x20000, 0x3FFFF}};
  return std::any_of(std::begin(kBlocks), std::end(kBlocks),
                     [c](const auto& block) { return c >= block.first && c <= block.last; });
}

// Whether a segment may be cut between two words: not in "ill|-disposed" or "20|%".
bool may_part(const TranscriptWord& before, const TranscriptWord& behind) {
  if (behind.spaced || before.text.empty() || behind.text.empty()) return true;
  size_t at = 0;
  const char32_t first = text::decode(behind.text, at);
  char32_t last = 0;
  for (at = 0; at < before.text.size();) last = text::decode(before.text, at);
  return is_of_blankless_script(last) || is_of_blankless_script(first);
}

}  // namespace

bool ends_sentence(std::string_view word) {
  constexpr std::string_view kClosing[] = {"\"", "'", ")", "]", "\u201D", "\u2019", "\u00BB"};
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::string_view mark : kClosing) {
      if (!word.ends_with(mark)) continue;
      word.remove_suffix(mark.size());
      changed = true;
    }
  }
  constexpr std::string_view kEnds[] = {".", "?", "!", "\u2026", "\u3002", "\uFF1F", "\uFF01"};
  return std::any_of(std::begin(kEnds), std::end(kEnds), [&](std::string_view mark) { return word.ends_with(mark); });
}

std::vector<PieceTimes::Word> piece_words(std::span<const TranscriptSegment> segments) {
  std::vector<PieceTimes::Word> out;
  for (const TranscriptSegment& segment : segments) {
    bool begins = true;
    for (const TranscriptWord& word : segment.words) {
      out.push_back({word.start_s, word.end_s, begins});
      begins = ends_sentence(word.text);
    }
  }
  return out;
}

PieceTimes::PieceTimes(const SpeechPiece& piece) : pad_s_(piece.pad_s) {
  double at = 0;
  for (const silero::SpeechSpan& span : piece.spans) {
    const auto begin = static_cast<double>(span.begin), length = static_cast<double>(span.end - span.begin);
    const bool goes_on =
        !stretches_.empty() && stretches_.back().recording_begin + at - stretches_.back().begin == begin;
    if (goes_on)
      stretches_.back().end += length;
    else
      stretches_.push_back({at, at + length, begin});
    at += length;
  }
}

// Index of the first word from `from` on that lies behind the seam.  The end of a sentence that began before may last
// into the silence behind the seam; no other word there is moved before it.
size_t PieceTimes::first_behind(std::span<const Word> words, size_t from, double seam_s) const {
  size_t half_behind = from;
  while (half_behind < words.size() && seam_s - words[half_behind].start_s > words[half_behind].end_s - seam_s)
    ++half_behind;
  size_t behind = half_behind;
  for (size_t i = from; i < words.size() && words[i].start_s <= seam_s + pad_s_; ++i) {
    if (words[i].begins && words[i].start_s >= seam_s - pad_s_ - kInaccuracyS) behind = i;
    if (words[i].start_s >= seam_s || (i >= half_behind && words[i].begins)) break;
  }
  return behind;
}

std::vector<size_t> PieceTimes::stretches_of(std::span<const Word> words) const {
  std::vector<size_t> out(words.size(), 0);
  size_t first = 0;
  for (size_t stretch = 1; stretch < stretches_.size(); ++stretch) {
    first = first_behind(words, first, stretches_[stretch].begin / kRate);
    std::fill(out.begin() + static_cast<ptrdiff_t>(first), out.end(), stretch);
  }
  return out;
}

bool PieceTimes::is_long_pause(size_t before, size_t behind) const {
  double left_out = 0;
  for (size_t i = before; i < behind; ++i)
    left_out +=
        stretches_[i + 1].recording_begin - stretches_[i].recording_begin - (stretches_[i].end - stretches_[i].begin);
  return left_out > kLongPauseS * kRate;
}

std::vector<bool> PieceTimes::follow_pauses(std::span<const size_t> stretches) const {
  std::vector<bool> out(stretches.size(), false);
  for (size_t i = 1; i < stretches.size(); ++i) out[i] = is_long_pause(stretches[i - 1], stretches[i]);
  return out;
}

size_t PieceTimes::stretch_at(double piece_s) const {
  size_t stretch = 0;
  while (stretch + 1 < stretches_.size() && stretches_[stretch + 1].begin <= piece_s * kRate) ++stretch;
  return stretch;
}

double PieceTimes::place(size_t stretch, double piece_s) const {
  const Stretch& s = stretches_[stretch];
  return (s.recording_begin + std::clamp(piece_s * kRate - s.begin, 0.0, s.end - s.begin)) / kRate;
}

void PieceTimes::place_segment(TranscriptSegment& segment, size_t first, size_t last) const {
  // A time on the other side of a pause says nothing; the nearest word does.
  const bool has_words = !segment.words.empty();
  const bool from_word = has_words && first > 0, to_word = has_words && last + 1 < stretches_.size();
  if (from_word && segment.start_s * kRate < stretches_[first].begin) segment.start_s = segment.words.front().start_s;
  if (to_word && segment.end_s * kRate > stretches_[last].end) segment.end_s = segment.words.back().end_s;
  segment.start_s = place(first, segment.start_s);
  segment.end_s = std::max(segment.start_s, place(last, segment.end_s));
}

void PieceTimes::place_words(TranscriptSegment& segment, std::span<const size_t> stretches) const {
  for (size_t i = 0; i < segment.words.size(); ++i) {
    TranscriptWord& word = segment.words[i];
    const auto move = [&](auto& part) {
      part.start_s = place(stretches[i], part.start_s);
      part.end_s = std::max(part.start_s, place(stretches[i], part.end_s));
    };
    move(word);
    for (TranscriptToken& token : word.timed_tokens) move(token);
  }
}

std::vector<TranscriptSegment> PieceTimes::in_recording(std::vector<TranscriptSegment> segments,
                                                        std::span<const size_t> stretches) const {
  std::vector<TranscriptSegment> out;
  if (stretches_.empty()) return segments;
  for (TranscriptSegment& whole : segments) {
    const std::span<const size_t> own = stretches.first(whole.words.size());
    stretches = stretches.subspan(own.size());
    if (own.empty()) {
      const size_t last = std::max(stretch_at(whole.start_s), stretch_at(whole.end_s - pad_s_));
      place_segment(whole, std::min(stretch_at(whole.start_s + pad_s_ + kInaccuracyS), last), last);
      out.push_back(std::move(whole));
      continue;
    }
    const auto is_cut = [&](size_t word) {
      return is_long_pause(own[word - 1], own[word]) && may_part(whole.words[word - 1], whole.words[word]);
    };
    for (size_t begin = 0, end = 1; begin < own.size(); begin = end++) {
      while (end < own.size() && !is_cut(end)) ++end;
      const bool is_whole = begin == 0 && end == own.size();
      TranscriptSegment part = is_whole ? whole : part_of(whole, begin, end);
      place_segment(part, own[begin], own[end - 1]);
      place_words(part, own.subspan(begin, end - begin));
      out.push_back(std::move(part));
    }
  }
  return out;
}

}  // namespace syrinx
