#include "text/tokens/bpe_split.h"

#include "text/unicode.h"

namespace syrinx::text {
namespace {

enum class Kind : uint8_t { kSpace, kLetter, kNumber, kOther };

Kind kind_of(char32_t c) {
  if (is_ascii_letter(c)) return Kind::kLetter;
  switch (classify(c)) {
    case Class::kSpace: return Kind::kSpace;
    case Class::kUpper:
    case Class::kLower:
    case Class::kOtherLetter: return Kind::kLetter;
    case Class::kDigit:
    case Class::kOtherNumber: return Kind::kNumber;
    default: return Kind::kOther;
  }
}

// The kind of the character at `offset`, which moves behind it.
Kind next_kind(std::string_view text, size_t& offset) { return kind_of(decode(text, offset)); }

// The end of the run of one kind that begins at `offset`.
size_t run_end(std::string_view text, size_t offset, Kind kind) {
  for (size_t next = offset; offset < text.size(); offset = next)
    if (next_kind(text, next) != kind) break;
  return offset;
}

bool is_line_end(char c) { return c == '\r' || c == '\n'; }

constexpr std::string_view kContractions[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};

// Bytes of the contraction at the beginning of `text`, or 0.
size_t contraction(std::string_view text) {
  for (const std::string_view ending : kContractions)
    if (text.starts_with(ending)) return ending.size();
  return 0;
}

// The same in any case; U+017F is a lower case of S.
size_t contraction_any_case(std::string_view text) {
  if (text.front() != '\'') return 0;
  for (const std::string_view ending : kContractions)
    if (text.size() >= ending.size() && ascii_lower(text.substr(0, ending.size())) == ending) return ending.size();
  return text.starts_with("'\u017F") ? 3 : 0;
}

// White space from `begin` on leaves its last character to the word that follows, if one does.
size_t space_end(std::string_view text, size_t begin, size_t end) {
  if (end == text.size()) return end;
  size_t last = begin;
  for (size_t next = begin; next < end;) {
    last = next;
    decode(text, next);
  }
  return last > begin ? last : end;
}

size_t gpt2_end(std::string_view text, size_t begin, bool lone_numbers) {
  if (const size_t size = contraction(text.substr(begin))) return begin + size;
  size_t after = begin;
  Kind kind = next_kind(text, after);
  if (kind == Kind::kNumber && lone_numbers) return after;
  // One space may lead what is not space.
  if (text[begin] == ' ' && after < text.size()) {
    size_t word = after;
    kind = next_kind(text, word);
    if (kind == Kind::kNumber && lone_numbers) return after;
    if (kind != Kind::kSpace) after = word;
  }
  if (kind != Kind::kSpace) return run_end(text, after, kind);
  const size_t end = run_end(text, begin, Kind::kSpace);
  if (end < text.size() && lone_numbers) {
    // A number ends the text that GPT-2's expression sees.
    size_t next = end;
    if (next_kind(text, next) == Kind::kNumber) return end;
  }
  return space_end(text, begin, end);
}

// Symbols with line ends behind them, a space before them or not, or white space.
// `slashes`: slashes may stand among those line ends.
size_t symbols_or_space_end(std::string_view text, size_t begin, bool slashes) {
  size_t after = begin;
  const Kind kind = next_kind(text, after);
  size_t second = after;
  const bool leads = text[begin] == ' ' && after < text.size() && next_kind(text, second) == Kind::kOther;
  if (kind == Kind::kOther || leads) {
    size_t end = run_end(text, after, Kind::kOther);
    while (end < text.size() && (is_line_end(text[end]) || (slashes && text[end] == '/'))) ++end;
    return end;
  }
  const size_t end = run_end(text, begin, Kind::kSpace);
  size_t line = end;
  while (line > begin && !is_line_end(text[line - 1])) --line;
  return line > begin ? line : space_end(text, begin, end);
}

size_t cl100k_end(std::string_view text, size_t begin, size_t most_numbers) {
  if (const size_t size = contraction_any_case(text.substr(begin))) return begin + size;
  size_t after = begin;
  const Kind kind = next_kind(text, after);
  if (kind == Kind::kLetter) return run_end(text, after, kind);
  if (kind == Kind::kNumber) {
    for (size_t next = after, count = 1; count < most_numbers && next < text.size(); ++count, after = next)
      if (next_kind(text, next) != kind) break;
    return after;
  }
  // One character that is no line end may lead letters.
  size_t second = after;
  const Kind second_kind = after < text.size() ? next_kind(text, second) : Kind::kSpace;
  if (second_kind == Kind::kLetter && !is_line_end(text[begin])) return run_end(text, second, second_kind);
  return symbols_or_space_end(text, begin, false);
}

// Tekken's classes of word characters.
enum class Case : uint8_t { kNone, kUpper, kLower, kBoth };

Case case_of(char32_t c) {
  switch (classify(c)) {
    case Class::kUpper: return Case::kUpper;
    case Class::kLower: return Case::kLower;
    case Class::kOtherLetter:
    case Class::kMark: return Case::kBoth;
    default: return Case::kNone;
  }
}

// The end of the run of word characters but those of case `other`; `both` becomes the end of its last one of either
// case.
size_t case_run_end(std::string_view text, size_t offset, Case other, size_t& both) {
  for (size_t next = offset; offset < text.size(); offset = next) {
    const Case own = case_of(decode(text, next));
    if (own == Case::kNone || own == other) break;
    if (own == Case::kBoth) both = next;
  }
  return offset;
}

// [US]*[BS]+ from `begin` on, or nothing: where no lower case follows, the last of S ends it.
size_t lower_word_end(std::string_view text, size_t begin) {
  size_t both = 0, unused = 0;
  const size_t capitals = case_run_end(text, begin, Case::kLower, both);
  const size_t end = case_run_end(text, capitals, Case::kUpper, unused);
  return end > capitals ? end : both;
}

size_t cased_words_end(std::string_view text, size_t begin) {
  size_t after = begin, unused = 0;
  const Kind kind = next_kind(text, after);
  if (kind == Kind::kNumber) return after;
  // One character that is no line end may lead a word.
  const bool leads = kind != Kind::kLetter && !is_line_end(text[begin]);
  const size_t word = leads ? after : begin;
  if (const size_t end = lower_word_end(text, word)) return end;
  if (leads)
    if (const size_t end = lower_word_end(text, begin)) return end;
  if (const size_t end = case_run_end(text, word, Case::kLower, unused); end > word) return end;
  return symbols_or_space_end(text, begin, true);
}

}  // namespace

std::optional<BpeSplit> find_bpe_expression(std::string_view expression) {
  if (expression == R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)")
    return BpeSplit::kGpt2;
  if (expression == R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
                    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
                    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)")
    return BpeSplit::kCasedWords;
  constexpr std::string_view kBefore = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)";
  constexpr std::string_view kAfter = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  if (!expression.starts_with(kBefore) || !expression.ends_with(kAfter) ||
      expression.size() < kBefore.size() + kAfter.size())
    return std::nullopt;
  const std::string_view numbers =
      expression.substr(kBefore.size(), expression.size() - kBefore.size() - kAfter.size());
  if (numbers == R"(\p{N}{1,3})") return BpeSplit::kCl100k;
  if (numbers == R"(\p{N})") return BpeSplit::kCl100kLoneDigits;
  return std::nullopt;
}

size_t piece_end(std::string_view text, size_t begin, BpeSplit split) {
  switch (split) {
    case BpeSplit::kGpt2: return gpt2_end(text, begin, false);
    case BpeSplit::kGpt2LoneDigits: return gpt2_end(text, begin, true);
    case BpeSplit::kCl100k: return cl100k_end(text, begin, 3);
    case BpeSplit::kCl100kLoneDigits: return cl100k_end(text, begin, 1);
    case BpeSplit::kCasedWords: return cased_words_end(text, begin);
  }
  return text.size();
}

std::vector<std::string_view> split_bpe(std::string_view text, BpeSplit split) {
  std::vector<std::string_view> pieces;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = piece_end(text, begin, split);
    pieces.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

}  // namespace syrinx::text
