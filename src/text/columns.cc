#include "text/columns.h"

#include <algorithm>
#include <optional>

#include "text/unicode.h"

namespace syrinx::text {
namespace {

// Cost of a break inside a sentence against one behind a comma or a full stop, in columns.
constexpr size_t kNoPunctuation = 8;

struct Grapheme {
  size_t begin, end;
  size_t columns;
};

std::vector<Grapheme> graphemes(std::string_view text) {
  std::vector<Grapheme> out;
  int state = 0;
  char32_t before = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t c = decode(text, at);
    if (out.empty() || ends_grapheme(before, c, state)) {
      out.push_back({begin, at, width(c)});
    } else {
      out.back().end = at;
      out.back().columns = std::max(out.back().columns, width(c));
    }
    before = c;
  }
  return out;
}

// Columns of words[begin, end) with blanks between.
size_t width_of(const std::vector<std::string>& words, size_t begin, size_t end) {
  size_t sum = 0;
  for (size_t i = begin; i < end; ++i) sum += columns(words[i]) + (i > begin ? 1 : 0);
  return sum;
}

std::string joined(const std::vector<std::string>& words, size_t begin, size_t end) {
  std::string line;
  for (size_t i = begin; i < end; ++i) line += (i > begin ? " " : "") + words[i];
  return line;
}

// Before which word a second line begins.
std::optional<size_t> best_break(const std::vector<std::string>& words, size_t limit) {
  std::optional<size_t> best;
  size_t best_cost = 0;
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t above = width_of(words, 0, i), below = width_of(words, i, words.size());
    if (above > limit || below > limit) continue;
    const size_t cost =
        std::max(above, below) - std::min(above, below) + (ends_in_punctuation(words[i - 1]) ? 0 : kNoPunctuation);
    if (best && cost >= best_cost) continue;
    best = i;
    best_cost = cost;
  }
  return best;
}

}  // namespace

size_t columns(std::string_view text) {
  size_t sum = 0;
  for (const Grapheme& g : graphemes(text)) sum += g.columns;
  return sum;
}

size_t bytes_within(std::string_view text, size_t limit) {
  size_t sum = 0, bytes = 0;
  for (const Grapheme& g : graphemes(text)) {
    sum += g.columns;
    if (sum > limit) break;
    bytes = g.end;
  }
  return bytes;
}

std::string_view tail_within(std::string_view text, size_t limit) {
  const std::vector<Grapheme> all = graphemes(text);
  size_t sum = 0, begin = text.size();
  for (size_t i = all.size(); i-- > 0;) {
    sum += all[i].columns;
    if (sum > limit) break;
    begin = all[i].begin;
  }
  return text.substr(begin);
}

std::string printable(std::string_view text) {
  std::string out(text);
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(out[at]); };
  for (size_t i = 0; i < out.size(); ++i) {
    if ((byte(i) < 0x20 && out[i] != '\n') || byte(i) == 0x7f) out[i] = ' ';
    // U+0080 to U+009F, two bytes: U+009B begins an order as an escape and [ do.
    if (byte(i) == 0xC2 && i + 1 < out.size() && (byte(i + 1) & 0xE0) == 0x80) out[i] = out[i + 1] = ' ';
  }
  // A terminal of one byte a letter takes 0x9B for the same.
  size_t begin = 0;
  while (const auto invalid = find_invalid(std::string_view(out).substr(begin))) {
    out[begin + *invalid] = ' ';
    begin += *invalid + 1;
  }
  return out;
}

std::vector<std::string> words_within(std::string_view text, size_t limit) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    for (std::string_view rest = word; !rest.empty();) {
      // A grapheme of many marks may be wider than the limit, and still goes on.
      const size_t bytes = std::max(bytes_within(rest, limit), graphemes(rest).front().end);
      words.emplace_back(rest.substr(0, bytes));
      rest.remove_prefix(bytes);
    }
    word.clear();
  };
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (is_space(decode(text, at))) {
      end_word();
    } else {
      word.append(text.substr(begin, at - begin));
    }
  }
  end_word();
  return words;
}

bool ends_in_punctuation(std::string_view word) {
  size_t at = word.size();
  while (at > 0 && (static_cast<unsigned char>(word[at - 1]) & 0xC0) == 0x80) --at;
  if (at == 0) return false;
  --at;
  return classify(decode(word, at)) == Class::kPunctuation;
}

std::vector<std::string> balanced_lines(const std::vector<std::string>& words, size_t limit) {
  if (words.empty()) return {};
  if (width_of(words, 0, words.size()) <= limit) return {joined(words, 0, words.size())};
  if (const auto second = best_break(words, limit)) {
    return {joined(words, 0, *second), joined(words, *second, words.size())};
  }
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < words.size();) {
    size_t end = begin + 1;
    while (end < words.size() && width_of(words, begin, end + 1) <= limit) ++end;
    lines.push_back(joined(words, begin, end));
    begin = end;
  }
  return lines;
}

}  // namespace syrinx::text
