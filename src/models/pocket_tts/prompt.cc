#include "models/pocket_tts/prompt.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <unordered_map>

#include "text/unicode.h"
#include "text/upper_case.h"

namespace syrinx::pocket {
namespace {

using Ids = std::span<const int32_t>;

constexpr std::u32string_view kTerminal = U".!?\u2026";
constexpr std::u32string_view kWeak = U",;:-\u2013\u2014";
constexpr std::u32string_view kWeakAndSpace = U",;:-\u2013\u2014 ";
constexpr std::u32string_view kClosersAndSpace = U"\"'\u201D\u2019)]\u00BB ";
constexpr std::u32string_view kClauseMarks = U",;:";
constexpr size_t kShortWords = 4;
constexpr size_t kPadding = 8;  // spaces; each becomes a token

bool contains(std::u32string_view set, char32_t c) { return set.find(c) != std::u32string_view::npos; }

// White space as Python has it, in str.strip, str.split and \s: the separators U+001C to U+001F count.
bool is_white(char32_t c) { return text::is_space(c) || (c >= 0x1C && c <= 0x1F); }

// str.isdigit: decimal digits of every script, and those that stand raised, lowered, in circles and so on (Unicode's
// Numeric_Type=Digit).
bool is_digit(char32_t c) {
  static constexpr struct {
    char32_t first, last;
  } kOther[] = {{0xB2, 0xB3},     {0xB9, 0xB9},       {0x1369, 0x1371},   {0x19DA, 0x19DA},   {0x2070, 0x2070},
                {0x2074, 0x2079}, {0x2080, 0x2089},   {0x2460, 0x2468},   {0x2474, 0x247C},   {0x2488, 0x2490},
                {0x24EA, 0x24EA}, {0x24F5, 0x24FD},   {0x24FF, 0x24FF},   {0x2776, 0x277E},   {0x2780, 0x2788},
                {0x278A, 0x2792}, {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A}, {0x1F100, 0x1F10A}};
  if (text::digit_value(c) >= 0) return true;
  return std::any_of(std::begin(kOther), std::end(kOther),
                     [c](const auto& range) { return c >= range.first && c <= range.last; });
}

std::u32string decoded(std::string_view bytes) {
  std::u32string out;
  for (size_t at = 0; at < bytes.size();) out += text::decode(bytes, at);
  return out;
}

std::string encoded(std::u32string_view characters) {
  std::string out;
  for (const char32_t c : characters) text::append_utf8(out, c);
  return out;
}

std::u32string_view stripped(std::u32string_view s) {
  while (!s.empty() && is_white(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_white(s.back())) s.remove_suffix(1);
  return s;
}

std::string stripped(std::string_view s) { return encoded(stripped(std::u32string_view(decoded(s)))); }

std::u32string_view without_end(std::u32string_view s, std::u32string_view set) {
  while (!s.empty() && contains(set, s.back())) s.remove_suffix(1);
  return s;
}

size_t count_words(std::u32string_view s) {
  size_t words = 0;
  for (size_t i = 0; i < s.size(); ++i) words += !is_white(s[i]) && (i == 0 || is_white(s[i - 1])) ? 1 : 0;
  return words;
}

// Every run of white space as one space, none at the ends.
std::u32string single_spaced(std::u32string_view s) {
  std::u32string out;
  for (const char32_t c : stripped(s)) {
    if (!is_white(c))
      out += c;
    else if (out.back() != ' ')
      out += U' ';
  }
  return out;
}

// A mark that the end of a sentence leaves no room for goes: with its quotes deleted, `"Hi?", she` is `Hi?, she`.
std::u32string without_stray_marks(std::u32string_view s) {
  std::u32string out;
  for (size_t i = 0; i < s.size();) {
    out += s[i++];
    if (!contains(kTerminal, s[i - 1])) continue;
    size_t mark = i;
    while (mark < s.size() && is_white(s[mark])) ++mark;
    if (mark < s.size() && contains(kClauseMarks, s[mark])) i = mark + 1;
  }
  return out;
}

// Line ends are spaces; then two spaces are one, from left to right, so that three are two.
std::u32string one_line(std::u32string_view s) {
  std::u32string out;
  bool pending = false;  // the last space has not met a second one
  for (char32_t c : s) {
    if (c == '\n' || c == '\r') c = ' ';
    if (c == ' ' && pending) {
      pending = false;
      continue;
    }
    pending = c == ' ';
    out += c;
  }
  return out;
}

// The model reads a text without a final mark badly: its last word is often mispronounced, or repeated.
std::u32string with_terminal_punctuation(std::u32string_view s) {
  const std::u32string_view core = without_end(s, kClosersAndSpace);
  if (core.empty() || contains(kTerminal, core.back())) return std::u32string(s);
  if (!contains(kWeak, core.back())) return std::u32string(s) + U'.';
  std::u32string out(without_end(core, kWeakAndSpace));
  out += U'.';
  out += stripped(s.substr(core.size()));  // closing marks
  return out;
}

// Where the segments of `ids` begin: 0, and every token that follows one of `marks` and is none itself.
// Section 2.3, step 3.
template <class Keep>
std::vector<size_t> segment_starts(Ids ids, Ids marks, Keep&& keep_together) {
  std::vector<size_t> starts = {0};
  bool after_mark = false;
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool mark = std::find(marks.begin(), marks.end(), ids[i]) != marks.end();
    if (!mark && after_mark && !keep_together(i)) starts.push_back(i);
    after_mark = mark;
  }
  return starts;
}

// Whether the cut before token `at` would part `3.` from `50`.  The maker decodes all that stands before and behind;
// what counts are two characters and one, at most four bytes and so four tokens each.
bool parts_decimal(const text::UnigramTokenizer& tokenizer, Ids ids, size_t at) {
  constexpr size_t kWindow = 8;  // some more, as a space at a window's beginning is not decoded
  constexpr size_t kInside = 3;  // the most bytes of a character behind its first
  const auto inside_character = [&](size_t i) {
    const int byte = i < ids.size() ? tokenizer.byte_of(ids[i]) : -1;
    return byte >= 0x80 && byte < 0xC0;
  };
  size_t begin = at - std::min(at, kWindow);
  for (size_t i = 0; i < kInside && begin > 0 && inside_character(begin); ++i) --begin;
  size_t end = std::min(ids.size(), at + kWindow);
  for (size_t i = 0; i < kInside && inside_character(end); ++i) ++end;
  const std::u32string before = decoded(tokenizer.decode(ids.subspan(begin, at - begin)));
  const std::u32string behind = decoded(tokenizer.decode(ids.subspan(at, end - at)));
  return before.size() >= 2 && before.back() == '.' && is_digit(before[before.size() - 2]) && !behind.empty() &&
         is_digit(behind[0]);
}

struct Segment {
  size_t tokens = 0;
  std::string text;
};

void append_segments(const text::UnigramTokenizer& tokenizer, Ids ids, const std::vector<size_t>& starts,
                     std::vector<Segment>& out) {
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t end = i + 1 < starts.size() ? starts[i + 1] : ids.size();
    const Ids part = ids.subspan(starts[i], end - starts[i]);
    out.push_back({part.size(), tokenizer.decode(part)});
  }
}

// The ids of marks that are written without spaces between them, but for the first: that is the space before them.
Result<std::vector<int32_t>> mark_ids(const text::UnigramTokenizer& tokenizer, std::string_view marks) {
  SYRINX_TRY(std::vector<int32_t> ids, tokenizer.encode(marks));
  if (!ids.empty()) ids.erase(ids.begin());
  return ids;
}

// Steps 2 to 5: sentences, and the clauses of those that are too long.
Result<std::vector<Segment>> segments(std::string_view prepared, size_t max_tokens,
                                      const text::UnigramTokenizer& tokenizer) {
  SYRINX_TRY(const std::vector<int32_t> ids, tokenizer.encode(prepared));
  SYRINX_TRY(const std::vector<int32_t> sentence_marks, mark_ids(tokenizer, ".!...?"));
  SYRINX_TRY(const std::vector<int32_t> clause_marks, mark_ids(tokenizer, ",;:"));
  std::vector<Segment> sentences;
  append_segments(tokenizer, ids,
                  segment_starts(ids, sentence_marks, [&](size_t at) { return parts_decimal(tokenizer, ids, at); }),
                  sentences);
  std::vector<Segment> refined;
  for (Segment& sentence : sentences) {
    if (sentence.tokens > max_tokens) {
      SYRINX_TRY(const std::vector<int32_t> inner, tokenizer.encode(stripped(std::string_view(sentence.text))));
      const std::vector<size_t> starts = segment_starts(inner, clause_marks, [](size_t) { return false; });
      if (starts.size() > 1) {
        append_segments(tokenizer, inner, starts, refined);
        continue;
      }
    }
    refined.push_back(std::move(sentence));
  }
  return refined;
}

// Step 6: as many segments as fit, in order.
std::vector<std::string> packed(const std::vector<Segment>& segments, size_t max_tokens) {
  std::vector<std::string> chunks;
  std::string current;
  size_t tokens = 0;
  for (const Segment& segment : segments) {
    if (!current.empty() && tokens + segment.tokens <= max_tokens) {
      current += ' ';
      current += segment.text;
      tokens += segment.tokens;
      continue;
    }
    if (!current.empty()) chunks.push_back(stripped(std::string_view(current)));
    current = segment.text;
    tokens = segment.tokens;
  }
  if (!current.empty()) chunks.push_back(stripped(std::string_view(current)));
  return chunks;
}

// The preparation of one configuration, with its replacements ready to be looked up.
class Preparer {
 public:
  // Borrows `config`.
  explicit Preparer(const TextConfig& config) : config_(config) {
    for (const auto& [from, to] : config.replace) table_[from] = to;
  }

  // Nothing where the preparation leaves nothing.  A text that `goes_on` gets no final mark.
  Result<std::optional<PreparedText>> prepare(std::u32string_view text, bool goes_on = false) const {
    std::u32string s(stripped(text));
    if (!table_.empty()) {
      SYRINX_TRY(const std::u32string replaced, replace(s));
      s = without_stray_marks(single_spaced(replaced));
    }
    if (s.empty()) return std::optional<PreparedText>();
    s = one_line(s);
    if (config_.remove_semicolons) std::replace(s.begin(), s.end(), U';', U',');
    PreparedText out;
    out.frames_guess = count_words(s) <= kShortWords ? 3 : 1;
    if (config_.capitalize) s.replace(0, 1, text::upper_case(s[0]));  // a capital is its own
    if (config_.terminal_punctuation && !goes_on) s = with_terminal_punctuation(s);
    if (config_.pad_short && count_words(s) <= kShortWords) s.insert(0, kPadding, U' ');
    out.text = encoded(s);
    return std::optional<PreparedText>(std::move(out));
  }

 private:
  Result<std::u32string> replace(std::u32string_view s) const {
    std::u32string out;
    for (const char32_t c : s) {
      const auto entry = table_.find(c);
      if (entry == table_.end())
        out += c;
      else
        out += entry->second;
      if (out.size() > kMaxTextBytes)
        return fail(Code::kLimitExceeded,
                    "the text grows beyond {} characters when the configuration's replacements are made; give it in "
                    "parts",
                    kMaxTextBytes);
    }
    return out;
  }

  const TextConfig& config_;
  std::unordered_map<char32_t, std::u32string_view> table_;
};

// A text of the user's as characters.
Result<std::u32string> checked(std::string_view text) {
  if (text.size() > kMaxTextBytes)
    return fail(Code::kLimitExceeded, "the text has {} bytes, at most {} are spoken at once; give it in parts",
                text.size(), kMaxTextBytes);
  if (const auto invalid = text::find_invalid(text))
    return fail(Code::kInvalidArgument, "the text is not valid UTF-8 at byte {}", *invalid);
  return decoded(text);
}

tl::unexpected<Error> nothing_to_say() {
  return fail(Code::kInvalidArgument, "there is nothing to say: the text has no characters that are spoken");
}

}  // namespace

Result<PreparedText> prepare_text(std::string_view text, const TextConfig& config) {
  SYRINX_TRY(const std::u32string characters, checked(text));
  SYRINX_TRY(std::optional<PreparedText> prepared, Preparer(config).prepare(characters));
  if (!prepared) return nothing_to_say();
  return std::move(*prepared);
}

Result<std::vector<Chunk>> split_text(std::string_view text, size_t max_tokens, const TextConfig& config,
                                      const text::UnigramTokenizer& tokenizer, bool goes_on) {
  SYRINX_TRY(const std::u32string characters, checked(text));
  const Preparer preparer(config);
  SYRINX_TRY(const std::optional<PreparedText> whole, preparer.prepare(characters, goes_on));
  if (!whole) return nothing_to_say();
  SYRINX_TRY(const std::vector<Segment> parts,
             segments(stripped(std::string_view(whole->text)), max_tokens, tokenizer));
  std::vector<Chunk> chunks;
  bool spoken_any = false;
  for (std::string& cut : packed(parts, max_tokens)) {
    SYRINX_TRY(std::optional<PreparedText> spoken, preparer.prepare(decoded(cut)));
    if (!spoken) {
      if (!cut.empty()) chunks.push_back({std::move(cut), {}, {}, 0});
      continue;
    }
    spoken_any = true;
    SYRINX_TRY(std::vector<int32_t> ids, tokenizer.encode(spoken->text));
    chunks.push_back({std::move(cut), std::move(spoken->text), std::move(ids), spoken->frames_guess});
  }
  if (!spoken_any) return nothing_to_say();
  return chunks;
}

}  // namespace syrinx::pocket
