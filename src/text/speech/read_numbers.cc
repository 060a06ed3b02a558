// Digits that are no date, time, address or money: cardinals, years, ordinals, decimals, fractions, ranges, versions,
// units, plurals ("1990s"), and digits within names ("A320", "20-year-old").
#include "text/speech/numbers.h"
#include "text/speech/readers.h"

namespace syrinx::text {
namespace {

bool is_dash(char32_t c) { return c == '-' || c == U'–'; }

// Four digits read in pairs.
bool looks_like_year(const Number& number) {
  return !number.grouped && number.decimals.empty() && number.whole.size() == 4 && number.whole >= "1100" &&
         number.whole <= "2099";
}

std::string plain_words(const Number& number, const NormalizeOptions& options) {
  if (looks_like_year(number)) return year(number.whole);
  if (number.decimals.empty() && number.whole.size() > 1 && number.whole[0] == '0') return one_by_one(number.whole);
  return number_words(number, options);
}

// "three quarters", "twenty two over seven".
std::string fraction_words(std::string_view above, std::string_view below, const NormalizeOptions& options) {
  const std::string top = cardinal(above, {options.british});
  if (below == "2") return top + (is_one(above) ? " half" : " halves");
  if (below == "4") return top + (is_one(above) ? " quarter" : " quarters");
  const bool named =
      below.size() == 1 ? below > "2" : (below.size() == 2 && (below < "21" || below.ends_with("0"))) || below == "100";
  if (!named) return top + " over " + cardinal(below, {options.british});
  return top + " " + (is_one(above) ? ordinal(below) : plural(ordinal(below)));
}

// "1/2", "1 1/2", "9/11"; `whole` holds "1 " of a mixed number.
size_t read_fraction(const Input& in, size_t i, const NormalizeOptions& options, Output& out) {
  size_t top = i;
  std::string whole;
  if (const size_t end = in.digits_end(i);
      in.at(end) == ' ' && in.digit(end + 1) && in.at(in.digits_end(end + 1)) == '/') {
    whole = in.ascii(i, end);
    top = end + 1;
  }
  const size_t slash = in.digits_end(top);
  const size_t end = in.digits_end(slash + 1);
  if (in.at(slash) != '/' || end == slash + 1 || !in.ends_word(end) || in.at(end) == '/') return 0;
  const std::string above = in.ascii(top, slash);
  const std::string below = in.ascii(slash + 1, end);
  if (above.size() > 4 || below.size() > 4 || significant(below) == "0") return 0;
  std::string words = fraction_words(above, below, options);
  if (!whole.empty()) {
    if (is_one(above)) words.replace(0, 3, "a");
    words = cardinal(whole, {options.british}) + " and " + words;
  } else if ((above == "24" && below == "7") || (above == "9" && below == "11") || (above == "50" && below == "50")) {
    words = cardinal(above) + " " + cardinal(below);
  }
  out.rule("fraction");
  out.numbers(words, i, end);
  return end;
}

// "1.2.3", "10.0.0.1": every group, with the points between them.
size_t read_version(const Input& in, size_t i, Output& out) {
  size_t end = in.digits_end(i);
  size_t points = 0;
  std::string words;
  const auto group = [&](size_t from, size_t to) {
    const std::string digits = in.ascii(from, to);
    words += digits.size() > 3 || (digits.size() > 1 && digits[0] == '0') ? one_by_one(digits) : cardinal(digits);
  };
  group(i, end);
  while (in.at(end) == '.' && in.digit(end + 1)) {
    const size_t next = in.digits_end(end + 1);
    words += " point ";
    group(end + 1, next);
    end = next;
    ++points;
  }
  if (points < 2) return 0;
  out.rule("version");
  out.numbers(words, i, end);
  return end;
}

size_t ordinal_end(const Input& in, const Number& number) {
  if (!number.decimals.empty() || number.whole.empty()) return 0;
  const size_t end = number.end;
  for (const std::string_view suffix : {"st", "nd", "rd", "th"}) {
    if (in.matches(end, suffix) && in.ends_word(end + 2)) return end + 2;
  }
  return 0;
}

// Is the s behind these digits a plural rather than seconds?  "1990s" and "the 60s" are, "15s" and "2.5s" are not.
bool is_decade(const Number& number) {
  return number.decimals.empty() && number.whole.ends_with("0") &&
         (number.whole.size() == 2 || looks_like_year(number));
}

// "1990s", "'90s", "the 7's".
size_t read_plural(const Input& in, size_t i, const Number& number, const NormalizeOptions& options, Output& out) {
  size_t end = number.end;
  if (!number.decimals.empty()) return 0;
  if (in.at(end) == '\'') ++end;
  if (in.at(end) != 's' || !in.ends_word(end + 1)) return 0;
  out.rule("plural");
  out.numbers(plural(plain_words(number, options)), i, end + 1);
  return end + 1;
}

// "10-20", "1990–1995", "3-4 km", "5-10%".
size_t read_range(const Input& in, size_t i, const Number& low, const NormalizeOptions& options, Output& out) {
  size_t at = low.end;
  const bool percent = in.at(at) == '%';
  if (percent) ++at;
  const bool spaced = in.at(at) == ' ' && in.at(at + 1) == U'–' && in.at(at + 2) == ' ';
  if (!spaced && !is_dash(in.at(at))) return 0;
  const auto high = parse_number(in, at + (spaced ? 3 : 1));
  if (!high || is_dash(in.at(high->end)) || (in.letter(high->end) && !parse_unit(in, high->end))) return 0;
  out.rule("range");
  if (looks_like_year(low) && high->whole.size() == 2 && high->decimals.empty()) {  // 1914-18
    out.numbers(year(low.whole) + " to " + (high->whole[0] == '0' ? one_by_one(high->whole) : cardinal(high->whole)), i,
                high->end);
    return high->end;
  }
  std::string words = plain_words(low, options);
  words += (percent ? " percent to " : " to ") + plain_words(*high, options);
  if (const auto unit = parse_unit(in, high->end)) {
    out.numbers(words + " " + std::string(unit->plural), i, unit->end);
    return unit->end;
  }
  out.numbers(words, i, high->end);
  return high->end;
}

// Letters glued to the digits: "3D", "80s" was a plural, "20-year-old" keeps its hyphenated words.
size_t read_tail(const Input& in, size_t i, const Number& number, const NormalizeOptions& options, Output& out) {
  size_t end = number.end;
  if (in.at(end) == '-' && in.letter(end + 1)) {
    out.numbers(plain_words(number, options), i, end);
    out.space();
    return end + 1;
  }
  if (!in.letter(end)) return 0;
  const size_t letters = in.letters_end(end);
  if (letters - end == 1 && (in.at(end) == 'x' || in.at(end) == 'X') && in.digit(letters)) {  // 1920x1080
    out.numbers(plain_words(number, options) + " by", i, letters);
    return letters;
  }
  out.numbers(number_words(number, options), i, end);
  if (letters - end == 1) {
    const char letter = static_cast<char>(in.at(end));
    if (letter == 'x' || letter == 'X') {
      out.numbers("times", end, letters);
    } else {
      out.letters(std::string(1, letter), end, letters);
    }
    return letters;
  }
  return end;
}

size_t read_after_sign(const Input& in, size_t i, size_t begin, const NormalizeOptions& options, Output& out) {
  const auto number = parse_number(in, begin);
  if (!number) return 0;
  if (is_decade(*number)) {
    if (const size_t end = read_plural(in, i, *number, options, out); end > 0) return end;
  }
  if (const auto unit = parse_unit(in, number->end)) {
    const bool one = number->one();
    out.rule("unit");
    out.numbers(number_words(*number, options) + " " + std::string(one ? unit->singular : unit->plural), i, unit->end);
    return unit->end;
  }
  if (const size_t end = ordinal_end(in, *number); end > 0) {
    out.rule("ordinal");
    out.numbers(ordinal(number->whole, {options.british}), i, end);
    return end;
  }
  if (const size_t end = read_plural(in, i, *number, options, out); end > 0) return end;
  if (const size_t end = read_range(in, i, *number, options, out); end > 0) return end;
  if (const size_t end = read_tail(in, i, *number, options, out); end > 0) return end;
  out.numbers(plain_words(*number, options), i, number->end);
  return number->end;
}

// Digits behind letters: "A320", "COVID-19", "B2B", "MP3".
size_t read_in_name(const Input& in, size_t i, Output& out) {
  const bool hyphen = in.at(i) == '-';
  const size_t begin = hyphen ? i + 1 : i;
  if (!in.digit(begin) || i == 0 || !in.letter(i - 1)) return 0;
  const size_t end = in.digits_end(begin);
  if (in.at(end) == '.' && in.digit(end + 1)) return 0;  // "v2.0"
  if (end - begin == 4) {
    out.numbers(year(in.ascii(begin, end)), begin, end);
  } else {
    out.numbers(in_a_name(in.ascii(begin, end)), begin, end);
  }
  if (in.at(end) == '-' && in.letter(end + 1)) {
    out.space();
    return end + 1;
  }
  return end;
}

}  // namespace

std::optional<Number> parse_number(const Input& in, size_t i) {
  Number number;
  size_t end = in.digits_end(i);
  if (end == i && !(in.at(i) == '.' && in.digit(i + 1))) return std::nullopt;
  number.whole = in.ascii(i, end);
  while (end > i && end - i <= 3 + (number.grouped ? 100 : 0) && in.at(end) == ',' &&
         in.digits_end(end + 1) == end + 4) {
    number.whole += in.ascii(end + 1, end + 4);
    number.grouped = true;
    end += 4;
  }
  if (in.at(end) == '.' && in.digit(end + 1)) {
    const size_t decimals = in.digits_end(end + 1);
    number.decimals = in.ascii(end + 1, decimals);
    end = decimals;
  }
  number.end = end;
  return number;
}

std::string number_words(const Number& number, const NormalizeOptions& options) {
  std::string words = number.whole.empty() ? "" : cardinal(number.whole, {options.british});
  if (number.decimals.empty()) return words;
  if (!words.empty()) words += " ";
  return words + "point " + one_by_one(number.decimals);
}

size_t read_number(const Input& in, size_t i, const NormalizeOptions& options, Output& out) {
  if (const size_t end = read_in_name(in, i, out); end > 0) return end;
  size_t begin = i;
  const char32_t c = in.at(i);
  const bool may_have_sign =
      i == 0 || in.space(i - 1) || in.at(i - 1) == '(' || in.at(i - 1) == U'“' || in.at(i - 1) == '"';
  const bool starts = in.digit(i + 1) || (in.at(i + 1) == '.' && in.digit(i + 2));
  if ((c == '-' || c == '+' || c == U'±' || c == '~' || c == '#') && may_have_sign && starts) {
    out.numbers(c == '-'    ? "minus"
                : c == '+'  ? "plus"
                : c == U'±' ? "plus or minus"
                : c == '~'  ? "about"
                            : "number",
                i, i + 1);
    begin = i + 1;
  } else if (c == '\'' && in.digit(i + 1) && in.digit(i + 2) && in.ends_word(i + 3) == false && in.at(i + 3) == 's') {
    begin = i + 1;  // '90s
  } else if (!in.digit(i) && !(c == '.' && in.digit(i + 1) && may_have_sign)) {
    return 0;
  }
  if (const size_t end = read_version(in, begin, out); end > 0) return end;
  if (const size_t end = read_fraction(in, begin, options, out); end > 0) return end;
  return read_after_sign(in, begin, begin, options, out);
}

}  // namespace syrinx::text
