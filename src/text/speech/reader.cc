#include "text/speech/reader.h"

#include <array>

#include "text/escape.h"

namespace syrinx::text {
namespace {

enum Begin : uint8_t { kDigit = 1, kLetter = 2, kSign = 4, kAny = 7 };

struct NamedReader {
  std::string_view rule;  // of what it writes, unless it names another
  ReadFunction read;
  uint8_t begins = kAny;  // with what its business may begin
};

// In this order: what is special comes before what is plain.
constexpr std::array<NamedReader, 21> kReaders = {{
    {"code", read_code, kAny},
    {"address", read_address, kDigit | kLetter},
    {"formula", read_formula, kLetter},
    {"postcode", read_postcode, kLetter},
    {"phone", read_phone, kDigit | kSign},
    {"digits", read_digits, kDigit},
    {"verse", read_verse, kDigit},
    {"date", read_timestamp, kDigit},
    {"date", read_date, kDigit},
    {"date", read_month_date, kDigit | kLetter},
    {"date", read_day_name, kLetter},
    {"time", read_time, kDigit},
    {"money", read_money, kAny},
    {"maths", read_maths, kAny},
    {"item", read_item_mark, kSign},
    {"unit", read_measure, kDigit | kSign},
    {"number", read_number, kDigit | kSign},
    {"roman", read_roman, kLetter},
    {"abbreviation", read_abbreviation, kLetter},
    {"", read_word, kLetter | kSign},
    {"sign", read_mark, kSign},
}};

constexpr size_t kMaxOwnWord = 64;
constexpr size_t kMaxLinkText = 256;
constexpr size_t kMaxLinkTarget = 1024;

}  // namespace

std::vector<Token> Reader::read_all() {
  for (size_t i = 0; i < in_.size() && out_.tokens().size() <= options_.max_tokens;) {
    if (in_.space(i)) {
      out_.space();
      ++i;
      continue;
    }
    i = read_at(i);
  }
  return std::move(out_.tokens());
}

size_t Reader::read_at(size_t i) {
  if (const size_t end = read_escape(i); end > 0) return end;
  if (const size_t end = read_link(i); end > 0) return end;
  if (const size_t end = read_own_word(i); end > 0) return end;
  const uint8_t begin = in_.digit(i) ? kDigit : in_.letter(i) ? kLetter : kSign;
  for (const NamedReader& reader : kReaders) {
    if ((reader.begins & begin) == 0) continue;
    out_.rule(reader.rule);
    if (const size_t end = reader.read(in_, i, options_, out_); end > i) return end;
  }
  out_.drop();
  return i + 1;
}

size_t Reader::read_escape(size_t i) {
  if (in_.at(i) != '[') return 0;
  const size_t begin = in_.source(i, i + 1).begin;
  const auto escape = parse_escape(in_.source_text().substr(begin));
  if (!escape) return 0;
  size_t end = i + 1;
  while (end < in_.size() && in_.source(end, end + 1).begin < begin + escape->length) ++end;
  Token token;
  token.text = escape->word;
  token.source = {begin, begin + escape->length};
  if (escape->stress) {
    // The word itself is read as any other; every part of it takes the stress.
    const size_t first = out_.tokens().size();
    size_t inner = i + 1;
    const size_t close = begin + 1 + escape->word.size();
    while (inner < end && in_.source(inner, inner + 1).begin < close) {
      if (in_.space(inner)) {
        out_.space();
        ++inner;
      } else {
        inner = read_at(inner);
      }
    }
    for (size_t k = first; k < out_.tokens().size(); ++k) {
      out_.tokens()[k].stress = escape->stress;
      out_.tokens()[k].source = token.source;
    }
    return std::max(end, inner);
  }
  token.kind = TokenKind::kPhonemes;
  token.phonemes = escape->phonemes;
  out_.escape(std::move(token));
  return end;
}

// "[the guide](https://example.com/a)" says its text.
size_t Reader::read_link(size_t i) {
  if (in_.at(i) != '[') return 0;
  size_t close = i + 1;
  while (close - i < kMaxLinkText && close < in_.size() && in_.at(close) != ']' && in_.at(close) != '[') ++close;
  if (in_.at(close) != ']' || in_.at(close + 1) != '(' || close == i + 1) return 0;
  size_t end = close + 2;
  while (end - close < kMaxLinkTarget && !in_.space(end) && in_.at(end) != ')') ++end;
  const std::string target = in_.ascii(close + 2, end);
  const bool is_target = target.find("://") != std::string::npos || target.starts_with("#") ||
                         target.starts_with("/") || target.starts_with("./") || target.starts_with("mailto:") ||
                         target.find('.') < target.size();
  if (in_.at(end) != ')' || !is_target) return 0;
  for (size_t inner = i + 1; inner < close;) {
    if (in_.space(inner)) {
      out_.space();
      ++inner;
    } else {
      inner = read_at(inner);
    }
  }
  return end + 1;
}

// The longest run from here, up to white space, that the user's dictionary has; points and commas at its end are not
// part of it unless the dictionary says so.
size_t Reader::read_own_word(size_t i) {
  if (!options_.is_own_word || !in_.begins_word(i)) return 0;
  out_.rule({});
  size_t end = i;
  while (end < in_.size() && !in_.space(end) && end - i < kMaxOwnWord) ++end;
  for (; end > i; --end) {
    const char32_t last = in_.at(end - 1);
    if (is_ascii_letter(last) && (in_.letter(end) || (in_.at(end) == '\'' && in_.letter(end + 1))))
      continue;  // inside a word
    const Range range = in_.source(i, end);
    const std::string_view word = in_.source_text().substr(range.begin, range.size());
    if (!options_.is_own_word(word)) continue;
    out_.word(word, i, end);
    return end;
  }
  return 0;
}

}  // namespace syrinx::text
