#include "text/speech/reader.h"

#include <array>

#include "text/escape.h"

namespace syrinx::text {
namespace {

struct NamedReader {
  std::string_view rule;  // of what it writes, unless it names another
  ReadFunction read;
};

// In this order: what is special comes before what is plain.
constexpr std::array<NamedReader, 11> kReaders = {{
    {"address", read_address},
    {"phone", read_phone},
    {"date", read_date},
    {"date", read_month_date},
    {"time", read_time},
    {"money", read_money},
    {"number", read_number},
    {"roman", read_roman},
    {"abbreviation", read_abbreviation},
    {"", read_word},
    {"sign", read_mark},
}};

constexpr size_t kMaxOwnWord = 64;

}  // namespace

std::vector<Token> Reader::read_all() {
  for (size_t i = 0; i < in_.size();) {
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
  if (const size_t end = read_own_word(i); end > 0) return end;
  for (const NamedReader& reader : kReaders) {
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
