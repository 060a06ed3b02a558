// Digits that are no date, time, address, money or measure: cardinals, years, labels, decimals, fractions, versions,
// plurals ("1990s"), and digits within names ("A320", "20-year-old").
#include "text/speech/context.h"
#include "text/speech/currencies.h"
#include "text/speech/numbers.h"
#include "text/speech/readers.h"

namespace syrinx::text {
namespace {

// Behind these, four digits are a year even before a noun in the plural.
constexpr std::string_view kYearWords =
    " in since by until till before after around circa year of from the late early mid during between this that her "
    "his their our its spring summer autumn fall winter january february march april may june july august september "
    "october november december ";
constexpr std::string_view kEarlyYearWords = " in since by until till before after around circa year ";
// Behind these a number is a name.
constexpr std::string_view kLabels =
    " room suite flight route highway hwy interstate gate apartment apt boeing airbus psalm hymn section ";
// These may be verbs too, or stand before a quantity that tells their size.
constexpr std::string_view kLooseLabels =
    " unit bus train platform bay ward cell cabin locker channel model building floor studio area exit ";
constexpr std::string_view kSizes =
    " feet foot meters metres miles yards inches kilometers kilometres acres pounds tons people men women children "
    "passengers homes houses percent ";
// Behind a number these show a quantity, but are no nouns.
constexpr std::string_view kCountedWords =
    " more other new old young additional extra further fewer different hundred thousand million billion trillion "
    "dozen percent square of ";
// Between these and a number, a name is a place or a time: "In Japan 980 million".
constexpr std::string_view kBeforePlaces =
    " in at from by after with since of before for near outside across around throughout during within to until ";
constexpr std::string_view kQuantifiers =
    " some about nearly over almost around roughly approximately than least most only another these those all ";
constexpr std::string_view kNoNames =
    " january february march april may june july august september october november december monday tuesday wednesday "
    "thursday friday saturday sunday pages chapters verses lines sections rooms items psalms volumes numbers ";
// Words that open a sentence before an amount.
constexpr std::string_view kOpeners =
    " add approximately roughly nearly some exactly take use buy get give pay send drive run walk cut bake mix set "
    "type press enter dial call choose pick count only another sold spend invest save win divide multiply subtract "
    "compute calculate read write print wait score donate order maybe perhaps well yes just even totaling population "
    "total figure these those invite need want needs wants has have had with without make made includes including ";
constexpr std::string_view kStreets =
    " street st avenue ave road rd boulevard blvd drive dr lane ln court ct place pl highway hwy parkway square way ";

bool is_plain(const Number& number) { return !number.grouped && number.decimals.empty(); }

// "AD", "BC", "CE", "BCE" behind a year; end, or 0.
size_t era_end(const Input& in, size_t i) {
  const size_t at = in.at(i) == ' ' ? i + 1 : i;
  for (const std::string_view era : {"BCE", "BC", "AD", "CE"}) {
    if (in.ascii(at, at + era.size()) == era && in.ends_word(at + era.size())) return at + era.size();
  }
  return 0;
}

bool is_year(const Input& in, size_t begin, const Number& number) {
  if (!is_plain(number) || number.whole.size() < 3 || number.whole.size() > 4 || number.whole[0] == '0') return false;
  if (era_end(in, number.end) > 0) return true;
  if (number.whole.size() != 4 || number.whole > "2099") return false;
  const Near before = word_before(in, begin);
  const bool counts = plural_follows(in, number.end);
  if (number.whole < "1100") return before.is(kEarlyYearWords) && !counts;
  if (!counts || before.word.empty() || before.word.ends_with("'s")) return true;
  return before.is(kYearWords) && (before.word != "in" || number.whole >= "1700");
}

// "220 Elm St.": the number of a house, but not "some 250 Wall Street bankers".
bool is_house(const Input& in, size_t begin, size_t end) {
  if (word_before(in, begin).is(kQuantifiers)) return false;
  Near next = word_after(in, end);
  for (int k = 0; k < 3 && next.is_capital; ++k) {
    if (k > 0 && next.is(kStreets)) return !plural_follows(in, next.end);
    next = word_after(in, next.end);
  }
  return false;
}

// Does a name in capitals end with this word, and a preposition stand before it: "In New York 450 new cases"?
bool is_place(const Input& in, Near name) {
  for (int k = 0; k < 4; ++k) {
    const Near before = word_before(in, name.begin);
    if (before.word.empty() || before.mark != 0) return false;
    if (before.is(kBeforePlaces)) return true;
    if (!before.is_capital) return false;
    name = before;
  }
  return false;
}

bool is_label(const Input& in, size_t begin, const Number& number) {
  if (!is_plain(number) || number.whole.size() < 3 || number.whole.size() > 4) return false;
  if (is_house(in, begin, number.end)) return true;
  const Near before = word_before(in, begin);
  if (before.word.empty() || (before.mark != 0 && before.mark != '#' && before.mark != '-')) return false;
  const Near next = word_after(in, number.end);
  if (next.is(kCountedWords) || next.is(kSizes)) return false;
  if (before.is(kLabels)) return true;
  const bool is_counted = plural_follows(in, number.end);
  if (before.is(kLooseLabels) && (!is_counted || (before.is_capital && !before.is_start))) return true;
  if (!before.is_capital || before.word.size() < 2 || is_counted || before.is(kNoNames) ||
      is_function_word(before.word) || is_place(in, before))
    return false;
  return !before.is_start || !before.is(kOpeners);
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

constexpr std::string_view kScoreWords =
    " got get gets scored score scores rated rate rates rating gave give gives earned earn received grade graded "
    "quiz test exam mark marks back marked a an my her his ";

enum class FractionUse : uint8_t { kPart, kPair, kOutOf, kOver };

// "9/10 on the quiz", "20/20 vision", "in 3/4 time", "half of it".
FractionUse fraction_use(const Input& in, size_t begin, size_t end, const std::string& above,
                         const std::string& below) {
  const Near next = word_after(in, end);
  const bool is_rating = below == "5" || below == "10" || (below == "4" && above == "3");
  if (is_rating && next.is(" star stars ") && word_before(in, begin).word != "on") return FractionUse::kOutOf;
  if (above.size() == 3 && below.size() > 1 && above > "069" && above < "251" &&
      comes_after(in, begin, " bp pressure ", " is was of at a about around reading reads read ", 4))
    return FractionUse::kOver;
  const bool is_music = (below == "4" || below == "8" || below == "2") && above != "1";
  if ((above == "24" && below == "7") || (above == "9" && below == "11")) return FractionUse::kPair;
  if (above == below || next.is(" vision eyesight hindsight ")) return FractionUse::kPair;
  if (is_music && next.is(" time meter metre beat signature rhythm ")) return FractionUse::kPair;
  if (above.size() + below.size() < 3 || above.size() > below.size()) return FractionUse::kPart;
  if (next.word == "of") return FractionUse::kPart;
  const bool is_round = below.size() > 1 && (below.ends_with("0") || below.ends_with("5")) && below != "16";
  if (is_round && next.is(" score scores rating ratings grade grades mark marks result ")) return FractionUse::kOutOf;
  if (below.size() == 2 && is_round && above.size() == below.size() && below != "10") return FractionUse::kOutOf;
  const bool is_marked =
      (is_round || below == "12") &&
      comes_after(in, begin, kScoreWords, " it the movie film this him me us her them book was were is at an of ", 3);
  return is_marked ? FractionUse::kOutOf : FractionUse::kPart;
}

// "1/2", "1 1/2 in.", "9/10"; the number before a space is that of a mixed one.
size_t read_fraction(const Input& in, size_t i, const NormalizeOptions& options, Output& out) {
  size_t top = i;
  std::string whole;
  if (const size_t end = in.digits_end(i);
      (in.at(end) == ' ' || (in.at(end) == '-' && end == i + 1 && in.at(end + 2) == '/')) && in.digit(end + 1) &&
      in.at(in.digits_end(end + 1)) == '/') {
    whole = in.ascii(i, end);
    top = end + 1;
  }
  const size_t slash = in.digits_end(top);
  size_t end = in.digits_end(slash + 1);
  if (in.at(slash) != '/' || end == slash + 1 || in.at(end) == '/') return 0;
  const std::string above = in.ascii(top, slash);
  const std::string below = in.ascii(slash + 1, end);
  if (above.size() > 4 || below.size() > 4 || significant(below) == "0") return 0;
  const auto unit = parse_unit(in, end);
  if (!unit && !in.ends_word(end)) return 0;
  std::string words = fraction_words(above, below, options);
  const FractionUse use = whole.empty() ? fraction_use(in, i, end, above, below) : FractionUse::kPart;
  if (use != FractionUse::kPart) {
    const std::string_view between = use == FractionUse::kOutOf  ? " out of "
                                     : use == FractionUse::kOver ? " over "
                                                                 : " ";
    words = cardinal(above, {options.british}) + std::string(between) + cardinal(below, {options.british});
  } else if (!whole.empty()) {
    if (is_one(above)) words.replace(0, 3, "a");
    words = cardinal(whole, {options.british}) + " and " + words;
  }
  if (unit && use == FractionUse::kPart) {
    words += " " + (whole.empty() ? unit->singular : unit->plural);
    end = unit->end;
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

// "1990s", "'90s", "the 7's", "2000s".
size_t read_plural(const Input& in, size_t i, const Number& number, const NormalizeOptions& options, Output& out) {
  size_t end = number.end;
  if (!number.decimals.empty()) return 0;
  if (in.at(end) == '\'') ++end;
  if (in.at(end) != 's' || !in.ends_word(end + 1)) return 0;
  out.rule("plural");
  out.numbers(plural(plain_words(in, i, number, options)), i, end + 1);
  return end + 1;
}

// Letters glued to the digits: "3D", "2x", "20-year-old" keeps its hyphenated words.
size_t read_tail(const Input& in, size_t i, const Number& number, const NormalizeOptions& options, Output& out) {
  size_t end = number.end;
  if (in.at(end) == '-' && in.letter(end + 1)) {
    out.numbers(plain_words(in, i, number, options), i, end);
    out.space();
    return end + 1;
  }
  if (!in.letter(end)) return 0;
  const size_t letters = in.letters_end(end);
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
  if (const size_t end = read_plural(in, i, *number, options, out); end > 0) return end;
  if (const size_t end = read_tail(in, i, *number, options, out); end > 0) return end;
  if (is_year(in, begin, *number)) out.rule("year");
  out.numbers(plain_words(in, i, *number, options), i, number->end);
  const size_t era = number->whole.size() < 5 && is_plain(*number) ? era_end(in, number->end) : 0;
  if (era == 0) return number->end;
  const size_t letters = in.at(number->end) == ' ' ? number->end + 1 : number->end;
  out.letters(in.ascii(letters, era), letters, era);
  return era;
}

// Digits behind letters: "A320", "COVID-19", "B2B", "MP3".
size_t read_in_name(const Input& in, size_t i, Output& out) {
  const bool hyphen = in.at(i) == '-';
  const size_t begin = hyphen ? i + 1 : i;
  if (!in.digit(begin) || i == 0 || !in.letter(i - 1)) return 0;
  const size_t end = in.digits_end(begin);
  if (in.at(end) == '.' && in.digit(end + 1)) return 0;  // "v2.0"
  const std::string digits = in.ascii(begin, end);
  const bool is_flight =
      i >= 3 && in.upper(i - 1) && in.upper(i - 2) && comes_after(in, i - 2, " flight flights ", " ", 1);
  const bool is_plural = in.at(end) == 's' && in.ends_word(end + 1);
  const bool is_decade = is_plural && digits.ends_with("0") && (digits.size() == 2 || digits.size() == 4);
  const std::string words = is_flight ? one_by_one(digits) : in_label(digits);
  out.numbers(is_decade ? plural(words) : words, begin, is_decade ? end + 1 : end);
  if (is_decade) return end + 1;
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
  const bool may_group = end > i && end - i <= 3 && in.at(i) != '0';
  // "25 000"; every group has three digits.
  for (const char32_t sign : {U',', U' '}) {
    while (may_group && (!number.grouped || sign == ',') && in.at(end) == sign && in.digits_end(end + 1) == end + 4) {
      size_t last = end;
      while (in.at(last) == sign && in.digits_end(last + 1) == last + 4 && last - i < 100) last += 4;
      const bool goes_on = sign == ' ' && ((in.at(last) == ' ' && in.digit(last + 1)) || in.at(last) == '/' ||
                                           in.at(last) == '-' || in.letter(last));
      if (goes_on) break;
      for (; end < last; end += 4) number.whole += in.ascii(end + 1, end + 4);
      number.grouped = true;
    }
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

bool is_decade(const Number& number) {
  const bool is_century = number.whole.size() == 4 && number.whole >= "1100" && number.whole <= "2099";
  return is_plain(number) && number.whole.ends_with("0") && (number.whole.size() == 2 || is_century);
}

std::string plain_words(const Input& in, size_t begin, const Number& number, const NormalizeOptions& options) {
  if (!is_plain(number)) return number_words(number, options);
  if (number.whole.size() > 1 && number.whole[0] == '0') return one_by_one(number.whole);
  if (is_year(in, begin, number)) {
    return number.whole.size() == 4 ? year(number.whole, {options.british}) : in_label(number.whole);
  }
  return is_label(in, begin, number) ? in_label(number.whole) : number_words(number, options);
}

size_t read_number(const Input& in, size_t i, const NormalizeOptions& options, Output& out) {
  if (const size_t end = read_in_name(in, i, out); end > 0) return end;
  size_t begin = i;
  const char32_t c = in.at(i);
  const bool may_have_sign = i == 0 || in.space(i - 1) || in.at(i - 1) == '(' || in.at(i - 1) == U'“' ||
                             in.at(i - 1) == '"' || in.at(i - 1) == '=' || in.at(i - 1) == '<' || in.at(i - 1) == '>';
  const bool starts = in.digit(i + 1) || (in.at(i + 1) == '.' && in.digit(i + 2)) || is_currency_sign(in.at(i + 1));
  if ((c == '-' || c == '+' || c == U'±' || c == '~' || c == '#') && may_have_sign && starts) {
    out.numbers(c == '-'    ? "minus"
                : c == '+'  ? "plus"
                : c == U'±' ? "plus or minus"
                : c == '~'  ? "about"
                            : "number",
                i, i + 1);
    return i + 1;
  }
  if (c == '\'' && in.digit(i + 1) && in.digit(i + 2) && in.at(i + 3) == 's') {
    begin = i + 1;  // '90s
  } else if (!in.digit(i) && !(c == '.' && in.digit(i + 1) && may_have_sign)) {
    return 0;
  }
  if (const size_t end = read_version(in, begin, out); end > 0) return end;
  if (const size_t end = read_fraction(in, begin, options, out); end > 0) return end;
  return read_after_sign(in, begin, begin, options, out);
}

}  // namespace syrinx::text
