#include "text/speech/split.h"

#include <algorithm>
#include <array>

#include "text/escape.h"
#include "text/speech/abbreviations.h"
#include "text/speech/sentence_marks.h"

namespace syrinx::text {
namespace {

constexpr size_t kWrappedLineBytes = 55;  // a line this long was probably broken to fit a page
constexpr size_t kLookBackBytes = 64;     // no word or line is looked at further back than this
// The search for evidence about an end goes no further than this: a text that comes in pieces is searched again with
// each of them, from the mark on.
constexpr size_t kLookOnBytes = 256;
constexpr size_t kMaxOpenerBytes = 7;  // of the words that open a sentence behind an initialism

// Verdict on a possible end at one place.
enum class Verdict : uint8_t { kNo, kYes, kNeedMore };
struct Decision {
  Verdict verdict;
  size_t end;  // kYes: end of the sentence; kNo: where to go on
};

bool is_terminal(char32_t c) { return c == '.' || c == '!' || c == '?' || c == U'…'; }
bool is_opener(char32_t c) {
  return c == '"' || c == '\'' || c == '(' || c == '[' || c == '{' || c == U'“' || c == U'‘' || c == U'«';
}

class Scanner {
 public:
  Scanner(std::string_view text, size_t start, bool finished) : text_(text), start_(start), finished_(finished) {}

  // End of the sentence that begins at start_, searched from `from`.  kNeedMore gives the place to resume at.
  Decision find(size_t from) const {
    for (size_t i = from; i < text_.size();) {
      const char32_t c = peek(i);
      Decision decision{Verdict::kNo, i};
      if (c == '[') {
        decision = skip_escape(i);
      } else if (c == '\n') {
        decision = at_line_break(i);
      } else if (is_terminal(c) || ends_wide_sentence(c)) {
        const Marks marks = read_marks(i);
        decision = marks.has_wide ? behind_wide_terminal(marks.end) : at_terminal(i);
      } else {
        decode(text_, decision.end);
      }
      if (decision.verdict == Verdict::kNeedMore) return {Verdict::kNeedMore, i};
      if (decision.verdict == Verdict::kYes) return decision;
      i = decision.end;
    }
    return {Verdict::kNeedMore, text_.size()};
  }

  // Whether the text ends like a sentence or a line at `i`, where find() wanted to see more, and nothing follows.
  std::optional<size_t> end_before_pause(size_t i) const {
    const char32_t c = peek(i);
    if (!is_terminal(c) && !ends_wide_sentence(c) && c != '\n') return std::nullopt;
    const Marks marks = read_marks(i);
    size_t rest = marks.end;
    while (rest < text_.size() && is_space(peek(rest))) decode(text_, rest);
    if (rest < text_.size()) return std::nullopt;
    if (!marks.single_point) return marks.end;
    if (keeps_going(i)) return std::nullopt;
    const std::string_view word = word_before(i);
    const bool letter = word.size() == 1 && is_ascii_letter(static_cast<unsigned char>(word[0])) && word != "I";
    // "J. Smith", and "e." of an abbreviation that is still being written; but "Plan B.", and what ends its line.
    const bool ends_line = text_.find('\n', marks.end) != std::string_view::npos;
    if (letter && !ends_line && !(is_initial(word) && is_counted_by_letters(word_before(begin_of_gap(i - 1)))))
      return std::nullopt;
    return marks.end;
  }

 private:
  struct Marks {
    size_t end;         // behind the marks and the closing quotations and brackets
    bool single_point;  // a point alone: it may belong to an abbreviation
    bool has_wide;      // a mark of scripts without blanks
  };

  char32_t peek(size_t i) const { return i < text_.size() ? decode(text_, i) : 0; }
  Decision need_more() const { return {Verdict::kNeedMore, 0}; }

  Decision skip_escape(size_t i) const {
    const size_t length = escape_length(text_.substr(i));
    if (length > 0) return {Verdict::kNo, i + length};
    if (!finished_ && text_.size() - i < kMaxEscapeBytes) return need_more();
    return {Verdict::kNo, i + 1};
  }

  Decision at_line_break(size_t i) const {
    size_t next = i;
    size_t breaks = 0;
    while (next < text_.size() && is_space(peek(next))) {
      if (peek(next) == '\n') ++breaks;
      if (breaks >= 2 || next - i > kLookOnBytes) return {Verdict::kYes, i};
      decode(text_, next);
    }
    if (next == text_.size()) return finished_ ? Decision{Verdict::kYes, i} : need_more();
    if (classify(peek(next)) == Class::kLower) return {Verdict::kNo, next};
    const size_t back = i - std::min(i, kLookBackBytes);
    const size_t line = text_.substr(back, i - back).rfind('\n');
    const size_t line_bytes = line == std::string_view::npos ? i - back : i - (back + line + 1);
    return {line_bytes < kWrappedLineBytes ? Verdict::kYes : Verdict::kNo, line_bytes < kWrappedLineBytes ? i : next};
  }

  Marks read_marks(size_t i) const {
    size_t after = i;
    bool only_points = true;
    bool has_wide = false;
    size_t terminals = 0;
    const auto goes_on = [&] { return after < text_.size() && after - i < kLookOnBytes; };
    while (goes_on() && (is_terminal(peek(after)) || ends_wide_sentence(peek(after)))) {
      only_points = only_points && peek(after) == '.';
      has_wide = has_wide || ends_wide_sentence(peek(after));
      ++terminals;
      decode(text_, after);
    }
    while (terminals > 0 && goes_on() && is_closer(peek(after))) decode(text_, after);
    return {after, only_points && terminals == 1, has_wide};
  }

  // No blank follows; but a quotation may go on: 「はい。」と言った。
  Decision behind_wide_terminal(size_t after) const {
    if (after == text_.size()) return finished_ ? Decision{Verdict::kYes, after} : need_more();
    size_t last = after - 1;
    while ((static_cast<unsigned char>(text_[last]) & 0xC0) == 0x80) --last;
    const Class next = classify(peek(after));
    const bool goes_on = is_closer(peek(last)) && (next == Class::kOtherLetter || next == Class::kLower);
    return {goes_on ? Verdict::kNo : Verdict::kYes, after};
  }

  Decision at_terminal(size_t i) const {
    const auto [after, single_point, has_wide] = read_marks(i);
    if (after == text_.size()) return finished_ ? Decision{Verdict::kYes, after} : need_more();
    if (!is_space(peek(after))) return {Verdict::kNo, after};

    size_t next = after;
    size_t breaks = 0;
    while (next < text_.size() && is_space(peek(next))) {
      if (peek(next) == '\n') ++breaks;
      if (next - after > kLookOnBytes) return {single_point && keeps_going(i) ? Verdict::kNo : Verdict::kYes, after};
      decode(text_, next);
    }
    const bool line_break = breaks > 0;
    if (single_point && keeps_going(i)) {
      if (breaks >= 2) return {Verdict::kNo, after};
      return next == text_.size() && !finished_ ? need_more() : Decision{Verdict::kNo, next};
    }
    if (line_break && !single_point) return {Verdict::kYes, after};
    if (line_break && !point_of_abbreviation(i)) return {Verdict::kYes, after};
    const size_t openers_end = std::min(text_.size(), next + kLookOnBytes);
    while (next < openers_end && is_opener(peek(next)) && peek(next) != '[') decode(text_, next);
    if (next == text_.size()) return finished_ ? Decision{Verdict::kYes, after} : need_more();
    if (classify(peek(next)) == Class::kLower || peek(next) == '=') return {Verdict::kNo, after};  // "5! = 120"
    return single_point ? after_point(i, after, next) : Decision{Verdict::kYes, after};
  }

  // The word right before the point at `i`, with its inner points.
  std::string_view word_before(size_t i) const {
    size_t begin = i;
    const size_t limit = std::max(start_, i - std::min(i, kLookBackBytes));
    while (begin > limit) {
      const char32_t c = static_cast<unsigned char>(text_[begin - 1]);
      if (!is_ascii_letter(c) && !is_ascii_digit(c) && c != '.') break;
      --begin;
    }
    return text_.substr(begin, i - begin);
  }

  bool point_of_abbreviation(size_t i) const {
    const std::string_view word = word_before(i);
    return find_abbreviation(word) != nullptr || is_initialism(word) || is_initial(word);
  }

  // The end of the word before the white space that ends at `i`.
  size_t begin_of_gap(size_t i) const {
    while (i > start_ && text_[i - 1] == ' ') --i;
    return i;
  }

  // Words for things that are told apart by capital letters.
  static bool is_counted_by_letters(std::string_view word) {
    static constexpr std::array<std::string_view, 40> kThings = {
        "appendix", "block", "box",   "category",  "chapter",  "class", "column", "exhibit", "figure",  "floor",
        "gate",     "grade", "group", "hepatitis", "letter",   "level", "line",   "model",   "note",    "option",
        "part",     "phase", "plan",  "platform",  "point",    "room",  "route",  "row",     "section", "series",
        "side",     "step",  "table", "team",      "terminal", "type",  "unit",   "version", "vitamin", "zone"};
    std::string lower(word);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    return std::find(kThings.begin(), kThings.end(), lower) != kThings.end();
  }

  static bool is_initial(std::string_view word) {
    return word.size() == 1 && is_ascii_upper(static_cast<unsigned char>(word[0])) && word != "I";
  }

  // "Roe v. Wade": the words beside the abbreviation `word`, whose point is at `i`, are capitalised.
  bool is_between_names(std::string_view word, size_t i) const {
    const size_t before = begin_of_gap(static_cast<size_t>(word.data() - text_.data()));
    const std::string_view name =
        before > start_ && text_[before - 1] == '.' ? word_before(before - 1) : word_before(before);
    const size_t next = i + 2;
    return !name.empty() && is_ascii_upper(static_cast<unsigned char>(name[0])) && next < text_.size() &&
           text_[i + 1] == ' ' && is_ascii_upper(static_cast<unsigned char>(text_[next]));
  }

  // A point that never ends a sentence, whatever follows.
  bool keeps_going(size_t i) const {
    const std::string_view word = word_before(i);
    const Abbreviation* found = find_abbreviation(word);
    if (found != nullptr && (found->use == AbbreviationUse::kTitle || found->use == AbbreviationUse::kContinues)) {
      return true;
    }
    if (found != nullptr && found->use == AbbreviationUse::kBetweenNames) return is_between_names(word, i);
    // "1." at the start is the number of a list's item.
    const bool digits = !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
    return digits && word.data() == text_.data() + start_ && word.size() <= 3;
  }

  // A point followed by white space and, at `next`, by something that is not a small letter.
  Decision after_point(size_t i, size_t after, size_t next) const {
    const std::string_view word = word_before(i);
    const Abbreviation* found = find_abbreviation(word);
    if (is_initial(word)) return {Verdict::kNo, after};
    if (found != nullptr && (found->use == AbbreviationUse::kBeforeNumber || found->use == AbbreviationUse::kCapital)) {
      return {is_ascii_digit(peek(next)) ? Verdict::kNo : Verdict::kYes, after};
    }
    if (found != nullptr && is_ascii_digit(peek(next))) return {Verdict::kNo, after};  // "Jan. 5", "5 p.m. 12 May"
    if (is_initialism(word) && found == nullptr) return starts_like_a_sentence(next, after);
    return {Verdict::kYes, after};
  }

  // After "U.S." only a word that opens sentences more than it goes on with names counts as a new sentence.
  Decision starts_like_a_sentence(size_t next, size_t after) const {
    static constexpr std::array<std::string_view, 34> kOpeners = {
        "A",       "After", "Also", "An",   "And",   "As",   "At",   "But", "By",   "For", "He",  "How",
        "However", "I",     "If",   "In",   "It",    "Its",  "My",   "No",  "Not",  "On",  "Our", "She",
        "So",      "That",  "The",  "Then", "There", "They", "This", "We",  "What", "When"};
    size_t end = next;
    const size_t limit = std::min(text_.size(), next + kMaxOpenerBytes + 1);
    while (end < limit && is_ascii_letter(static_cast<unsigned char>(text_[end]))) ++end;
    if (end == text_.size() && end - next <= kMaxOpenerBytes && !finished_) return need_more();
    const std::string_view word = text_.substr(next, end - next);
    for (const std::string_view opener : kOpeners) {
      if (word == opener) return {Verdict::kYes, after};
    }
    return {Verdict::kNo, after};
  }

  std::string_view text_;
  size_t start_;
  bool finished_;
};

size_t skip_spaces(std::string_view text, size_t i) {
  while (i < text.size()) {
    size_t next = i;
    if (!is_space(decode(text, next))) break;
    i = next;
  }
  return i;
}

// Trims white space at the end.
size_t trim_end(std::string_view text, size_t begin, size_t end) {
  while (end > begin) {
    size_t last = end - 1;
    while (last > begin && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    size_t behind = last;
    if (!is_space(decode(text, behind))) break;
    end = last;
  }
  return end;
}

}  // namespace

std::vector<Range> split_sentences(std::string_view text) {
  std::vector<Range> sentences;
  for (size_t start = skip_spaces(text, 0); start < text.size();) {
    const Decision decision = Scanner(text, start, true).find(start);
    const size_t end = decision.verdict == Verdict::kYes ? decision.end : text.size();
    if (const size_t trimmed = trim_end(text, start, end); trimmed > start) sentences.push_back({start, trimmed});
    start = skip_spaces(text, end);
  }
  return sentences;
}

std::vector<Range> split_clauses(std::string_view sentence) {
  std::vector<Range> clauses;
  size_t begin = 0;
  for (size_t i = 0; i < sentence.size();) {
    if (sentence[i] == '[') {
      if (const size_t length = escape_length(sentence.substr(i)); length > 0) {
        i += length;
        continue;
      }
    }
    const char32_t c = decode(sentence, i);
    bool ends = c == U'—';
    if (ends_wide_clause(c) || ends_wide_sentence(c)) {
      for (size_t next = i; i < sentence.size(); i = next) {
        const char32_t closer = decode(sentence, next);
        if (!is_closer(closer) && !ends_wide_sentence(closer)) break;
      }
      ends = true;
    } else if (c == ',' || c == ';' || c == ':' || is_terminal(c) || c == ')') {
      while (i < sentence.size()) {
        size_t next = i;
        const char32_t closer = decode(sentence, next);
        if (!is_closer(closer) && !is_terminal(closer)) break;
        i = next;
      }
      size_t next = i;
      ends = i < sentence.size() && is_space(decode(sentence, next));
    }
    if (ends && i < sentence.size()) {
      clauses.push_back({begin, i});
      begin = i;
    }
  }
  if (begin < sentence.size()) clauses.push_back({begin, sentence.size()});
  return clauses;
}

Status SentenceStream::feed(std::string_view bytes) {
  if (finished_) return fail(Code::kInvalidArgument, "text arrived after the end of the stream");
  // Text already given out is erased, except the bytes that the scanner still looks back at.
  const size_t spent = given_ - std::min(given_, kLookBackBytes);
  if (spent > 0 && spent >= pending_.size() / 2) {
    pending_.erase(0, spent);
    consumed_ += spent;
    scanned_ -= spent;
    checked_ -= spent;
    given_ -= spent;
  }
  if (pending_.size() - given_ + bytes.size() > kMaxPendingBytes) {
    return fail(Code::kLimitExceeded,
                "more than {} bytes of text wait to be spoken; end the sentences or send less at once",
                kMaxPendingBytes);
  }
  pending_ += bytes;
  const std::string_view unchecked = std::string_view(pending_).substr(checked_);
  const size_t whole = unchecked.size() - unfinished_tail(unchecked);
  if (const auto wrong = find_invalid(unchecked.substr(0, whole))) {
    return fail(Code::kInvalidArgument, "byte {} of the text is not UTF-8; convert the text or leave the byte out",
                consumed_ + checked_ + *wrong);
  }
  checked_ += whole;
  return {};
}

std::optional<std::string> SentenceStream::next() {
  const std::string_view text = std::string_view(pending_).substr(0, checked_);
  while (true) {
    const size_t start = skip_spaces(text, given_);
    given_ = start;
    scanned_ = std::max(scanned_, start);
    if (start == text.size()) return std::nullopt;
    const Decision decision = Scanner(text, start, finished_).find(scanned_);
    if (decision.verdict != Verdict::kYes && !finished_) {
      scanned_ = decision.end;
      return std::nullopt;
    }
    const size_t end = decision.verdict == Verdict::kYes ? decision.end : text.size();
    given_ = scanned_ = end;
    const size_t trimmed = trim_end(text, start, end);
    if (trimmed > start) return give(start, trimmed);
  }
}

std::string SentenceStream::give(size_t start, size_t end) {
  sentence_offset_ = consumed_ + start;
  return pending_.substr(start, end - start);
}

std::optional<std::string> SentenceStream::next_at_pause() {
  if (checked_ != pending_.size() || given_ == checked_) return std::nullopt;  // in the middle of a character; nothing
  const size_t start = given_;
  const std::optional<size_t> end = Scanner(pending_, start, false).end_before_pause(scanned_);
  if (!end) return std::nullopt;
  const size_t trimmed = trim_end(pending_, start, *end);
  given_ = scanned_ = pending_.size();
  if (trimmed == start) return std::nullopt;
  return give(start, trimmed);
}

Status SentenceStream::finish() {
  finished_ = true;
  if (checked_ != pending_.size()) {
    return fail(Code::kInvalidArgument, "the text ends inside a UTF-8 character at byte {}; it was cut off",
                consumed_ + checked_);
  }
  return {};
}

}  // namespace syrinx::text
