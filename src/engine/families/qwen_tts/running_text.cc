#include "engine/families/qwen_tts/running_text.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "engine/families/qwen_tts/piece_planner.h"
#include "text/speech/sentence_marks.h"
#include "text/unicode.h"

namespace syrinx::qwen_tts {
namespace {

bool is_mark(char32_t c) {
  const text::Class found = text::classify(c);
  return found == text::Class::kPunctuation || found == text::Class::kSymbol;
}

bool ends_narrow_clause(char32_t c) {
  return c == ',' || c == ';' || c == ':' || c == '!' || c == '?' || c == U'…' || c == U'—';
}
bool has_spoken(std::string_view text) {
  for (size_t at = 0; at < text.size();)
    if (is_spoken(text::decode(text, at))) return true;
  return false;
}

std::string_view without_blank(std::string_view text) { return text.starts_with(' ') ? text.substr(1) : text; }

}  // namespace

RunningText::RunningText(Encode encode, size_t max_tokens) : encode_(std::move(encode)), max_tokens_(max_tokens) {
  SYRINX_CHECK(max_tokens_ >= 1, "{} tokens", max_tokens_);
}

Status RunningText::hear(std::string_view sentence, size_t offset, bool ended) {
  if (sentences_.empty() || sentences_.back().ended)
    sentences_.push_back({.offset = offset, .is_apart = offset > end_ || std::exchange(is_apart_, false)});
  Sentence& last = sentences_.back();
  SYRINX_CHECK(last.offset == offset, "a sentence at byte {} goes on at {}", last.offset, offset);
  add(last, sentence.substr(std::min(last.heard, sentence.size())));
  last.heard = std::max(last.heard, sentence.size());
  last.ended = ended;
  end_ = offset + sentence.size();
  return advance();
}

// One blank for each run of blanks and control characters, none at the ends.
void RunningText::add(Sentence& sentence, std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t c = text::decode(text, at);
    if (text::is_space(c) || (text::classify(c) == text::Class::kControl && c < 0xa0)) {
      sentence.follows_blank = !sentence.text.empty();
      continue;
    }
    if (std::exchange(sentence.follows_blank, false)) sentence.text += ' ';
    sentence.text += text.substr(begin, at - begin);
    if (is_spoken(c)) sentence.spoken_to = sentence.text.size();
  }
}

void RunningText::rest() {
  const bool rests = sentences_.empty() || (sentences_.front().at == 0 && sentences_.front().spoken_to == 0);
  if (rests && !piece_.tokens.empty()) piece_.ended = true;
}

bool RunningText::end_behind_sentence(size_t given) {
  if (piece_.ended || whole_ == 0 || given > whole_) return false;
  if (piece_.tokens.size() > whole_) {
    piece_.tokens.resize(whole_);
    sentences_.front().at = 0;
  }
  piece_.ended = true;
  return true;
}

Status RunningText::go_on() {
  SYRINX_CHECK(piece_.ended, "a piece that has not ended");
  piece_ = {};
  whole_ = 0;
  return advance();
}

// As far as the text is certain, up to the end of the piece.
Status RunningText::advance() {
  while (!piece_.ended && !sentences_.empty()) {
    Sentence& first = sentences_.front();
    const bool may_be_left_out = piece_.tokens.empty() || first.at == 0;
    if (may_be_left_out && first.spoken_to <= first.at) {
      if (!first.ended) return {};
      left_out_ += text::count_code_points(without_blank(std::string_view(first.text).substr(first.at)));
      (sentences_.size() > 1 ? sentences_[1].is_apart : is_apart_) |= first.is_apart;
      sentences_.pop_front();
    } else if (first.ended && first.at == first.text.size()) {
      whole_ = piece_.tokens.size();
      piece_.ended = whole_ >= (max_tokens_ + 1) / 2;
      sentences_.pop_front();
    } else {
      const size_t end = stretch_end(first);
      if (end == std::string::npos) return {};
      SYRINX_TRY_VOID(take(first, end));
    }
  }
  return {};
}

// Nowhere: not certain yet.
size_t RunningText::stretch_end(const Sentence& sentence) const {
  char32_t before = 0;
  size_t characters = 0;
  for (size_t at = sentence.at; at < sentence.text.size();) {
    const size_t begin = at;
    const char32_t c = text::decode(sentence.text, at);
    if (characters == kMostStretch) return begin;
    if (characters++ > 0 && (c == ' ' || (is_mark(c) && is_spoken(before)))) return begin;
    before = c;
  }
  return sentence.ended && sentence.at < sentence.text.size() ? sentence.text.size() : std::string::npos;
}

// The stretch up to `end`, or a part of it that fits; none of it where the piece ends before.
Status RunningText::take(Sentence& sentence, size_t end) {
  const size_t count = piece_.tokens.size(), last = end_behind_marks(sentence, end);
  const std::string_view text = std::string_view(sentence.text).substr(sentence.at, last - sentence.at);
  std::string stretch(count == 0 ? without_blank(text) : text);
  if (count > 0 && sentence.at == 0 && sentence.is_apart) stretch.insert(0, " ");
  SYRINX_TRY(std::vector<int32_t> tokens, encode_(stretch));
  size_t taken = last;
  const size_t most = max_tokens_ + (count > 0 && !has_spoken(stretch) ? kMostMarks : 0);
  const bool fits_whole = count + tokens.size() <= most;
  if (!fits_whole) {
    piece_.ended = count > 0;
    if (piece_.ended) return {};
    SYRINX_TRY(const size_t fits, fitting(stretch));
    taken = sentence.at + (text.size() - stretch.size()) + fits;
    SYRINX_TRY(tokens, encode_(std::string_view(stretch).substr(0, fits)));
  }
  piece_.tokens.insert(piece_.tokens.end(), tokens.begin(), tokens.end());
  const size_t begin = std::exchange(sentence.at, taken);
  piece_.ended = !fits_whole || last != end || ends_clause(sentence, begin, taken);
  return {};
}

// Where the piece may end in a stretch that begins with marks and goes on with letters; else its end.
size_t RunningText::end_behind_marks(const Sentence& sentence, size_t end) const {
  size_t at = sentence.at;
  size_t least = std::numeric_limits<size_t>::max();
  while (at < end) {
    size_t next = at;
    const char32_t c = text::decode(sentence.text, next);
    if (text::ends_wide_sentence(c)) {
      least = (max_tokens_ + 1) / 2;
    } else if (text::ends_wide_clause(c)) {
      least = std::min(least, (3 * max_tokens_ + 3) / 4);
    } else if (!text::is_closer(c)) {
      break;
    }
    at = next;
  }
  return piece_.tokens.size() >= least ? at : end;
}

// Whether the piece is long enough to end at the clause that ends with these bytes.
bool RunningText::ends_clause(const Sentence& sentence, size_t begin, size_t end) const {
  if (piece_.tokens.size() < (3 * max_tokens_ + 3) / 4) return false;
  if (end == sentence.text.size() || sentence.text[end] != ' ') return false;
  const std::string_view text = std::string_view(sentence.text).substr(begin, end - begin);
  char32_t last = 0;
  for (size_t at = 0; at < text.size();)
    if (const char32_t c = text::decode(text, at); !text::is_closer(c)) last = c;
  return ends_narrow_clause(last) || text::ends_wide_clause(last) || text::ends_wide_sentence(last);
}

// Bytes of the longest beginning that fits, one character with its marks at least.
Result<size_t> RunningText::fitting(std::string_view stretch) const {
  size_t fits = 0;
  int state = 0;
  for (size_t at = 0, next = 0; at < stretch.size(); at = next) {
    const char32_t c = text::decode(stretch, next);
    size_t behind = next;
    if (next < stretch.size() && !text::ends_grapheme(c, text::decode(stretch, behind), state)) continue;
    SYRINX_TRY(const std::vector<int32_t> tokens, encode_(stretch.substr(0, next)));
    if (fits > 0 && tokens.size() > max_tokens_) break;
    fits = next;
  }
  return fits;
}

}  // namespace syrinx::qwen_tts
