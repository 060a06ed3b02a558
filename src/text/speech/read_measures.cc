// Numbers with a unit, a scale or a range: 5 km, 35mm, 6'2", 12 x 15 ft, 100m people, 5-10%, 1.5-2x, 1st-3rd.
#include <algorithm>

#include "text/speech/context.h"
#include "text/speech/numbers.h"
#include "text/speech/readers.h"

namespace syrinx::text {
namespace {

constexpr std::string_view kLengthUnits =
    " inch inches foot feet yard yards meter meters metre metres centimeter centimeters centimetre centimetres "
    "millimeter millimeters millimetre millimetres pixel pixels ";
constexpr size_t kLookForQuote = 400;  // characters before an inch mark in which a quotation may have begun
constexpr size_t kLookForLength = 30;  // characters around an inch mark

bool is_times(const Input& in, size_t i) {
  return (in.at(i) == 'x' || in.at(i) == 'X' || in.at(i) == U'×') && !in.letter(i + 1);
}

// Is a quotation open before i, so that a mark behind a number may close it?
bool in_quotation(const Input& in, size_t i, char32_t mark) {
  bool open = false;
  for (size_t k = i - std::min(i, kLookForQuote); k < i; ++k) {
    if (in.at(k) != mark) continue;
    const bool opens = (k == 0 || in.space(k - 1) || in.at(k - 1) == '(') && in.alnum(k + 1);
    if (mark == '"') {
      if (!in.digit(k - 1) || k == 0 || open) open = !open;
    } else if (opens) {
      open = true;
    } else if (in.space(k + 1)) {
      open = false;
    }
  }
  return open;
}

// Is a length spoken of near i: "a board 12\" wide", "4' x 8'"?
bool is_length_near(const Input& in, size_t i) {
  constexpr std::string_view kLengthWords =
      " long wide tall deep thick high length width height depth diameter measures measured measuring measure inch "
      "inches foot feet screen monitor tv pipe board cut cuts snow rain ";
  const size_t begin = i - std::min(i, kLookForLength);
  for (size_t k = begin; k < i + kLookForLength && k < in.size(); ++k) {
    if (in.letter(k) && in.begins_word(k) && is_listed(in.ascii(k, in.letters_end(k)), kLengthWords)) return true;
    if (k != i && (in.at(k) == '"' || in.at(k) == '\'') && k > 0 && in.digit(k - 1)) return true;
    if (is_times(in, k) && (in.digit(k + 1) || (in.at(k + 1) == ' ' && in.digit(k + 2)))) return true;
  }
  return false;
}

// Is the mark behind the number that of a length, not the end of a quotation that began in an earlier sentence?
bool is_length_mark(const Input& in, size_t i, const Number& number) {
  const size_t mark = number.end;
  if (number.whole.size() == 4 && !number.grouped && number.decimals.empty()) return false;  // a year
  if (is_length_near(in, mark)) return true;
  if (in.at(mark) == '"' && in.at(mark + 1) == '.' && word_before(in, i).is(" is are ")) return true;
  const Near next = word_after(in, mark + 1);
  return in.space(mark + 1) && in.lower(mark + 2) &&
         !next.is(" he she they we said says asked replied told added answered cried wrote shouted explained ");
}

// Behind degrees: "40° 26' 46\"".
size_t read_arc(const Input& in, size_t i, const Number& number, const NormalizeOptions& options, Output& out) {
  const bool is_spaced = i > 0 && in.at(i - 1) == ' ';
  const size_t degree = is_spaced ? i - 1 : i;
  if (degree == 0 || in.at(degree - 1) != U'°' || in.at(number.end) != '\'') return 0;
  std::string words = number_words(number, options) + (number.one() ? " minute" : " minutes");
  size_t end = number.end + 1;
  const size_t second = in.at(end) == ' ' ? end + 1 : end;
  if (const auto seconds = parse_number(in, second); seconds && in.at(seconds->end) == '"') {
    words += " " + number_words(*seconds, options) + (seconds->one() ? " second" : " seconds");
    end = seconds->end + 1;
  }
  out.numbers(words, i, end);
  return end;
}

bool is_inch_mark(const Input& in, size_t i) { return in.at(i) == '"' && !in.alnum(i + 1); }

// "6'2\"", "3' 6\"", "5'", "12\"".
size_t read_feet(const Input& in, size_t i, const Number& number, const NormalizeOptions& options, Output& out) {
  const size_t mark = number.end;
  if (const size_t end = read_arc(in, i, number, options, out); end > 0) return end;
  if (in.at(mark) == '"') {
    if (!is_inch_mark(in, mark) || in_quotation(in, i, '"') || !is_length_mark(in, i, number)) return 0;
    const bool one = number.one() || describes_noun(in, i, mark + 1) ||
                     (in.space(mark + 1) && in.lower(mark + 2) && !is_function_word(word_after(in, mark + 1).word));
    out.numbers(number_words(number, options) + (one ? " inch" : " inches"), i, mark + 1);
    return mark + 1;
  }
  if (in.at(mark) != '\'' || in.letter(mark + 1) || number.whole.size() > 4) return 0;
  const size_t second = in.at(mark + 1) == ' ' ? mark + 2 : mark + 1;
  const auto inches = parse_number(in, second);
  if (inches && (is_inch_mark(in, inches->end) || (second == mark + 1 && in.ends_word(inches->end)))) {
    const size_t end = in.at(inches->end) == '"' ? inches->end + 1 : inches->end;
    const bool describes = describes_noun(in, i, end);
    const bool one_foot = describes || number.one();
    const std::string words =
        number_words(number, options) + (one_foot ? " foot " : " feet ") + number_words(*inches, options);
    out.numbers(words + (describes ? "" : inches->one() ? " inch" : " inches"), i, end);
    return end;
  }
  if (in.digit(mark + 1) || in_quotation(in, i, '\'') || !is_length_mark(in, i, number)) return 0;
  const bool one = number.one() || describes_noun(in, i, mark + 1);
  out.numbers(number_words(number, options) + (one ? " foot" : " feet"), i, mark + 1);
  return mark + 1;
}

// "5 ft 6 in tall": behind feet, "in" is no preposition unless a number follows.
size_t read_feet_and_inches(const Input& in, size_t i, const Number& feet, const Unit& foot,
                            const NormalizeOptions& options, Output& out) {
  if (foot.singular != "foot" || in.at(foot.end) != ' ') return 0;
  const auto inches = parse_number(in, foot.end + 1);
  if (!inches) return 0;
  const size_t unit = in.at(inches->end) == ' ' ? inches->end + 1 : inches->end;
  if (!in.matches(unit, "in") || !in.ends_word(unit + 2) || in.digit(in.skip_spaces(unit + 2))) return 0;
  const auto pointed = parse_unit(in, inches->end);
  const size_t end = pointed ? pointed->end : unit + 2;
  const bool describes = describes_noun(in, i, end);
  const std::string words = number_words(feet, options) + (describes || feet.one() ? " foot " : " feet ");
  out.numbers(words + number_words(*inches, options) + (describes ? "" : inches->one() ? " inch" : " inches"), i, end);
  return end;
}

std::string unit_words(const Input& in, size_t begin, const Unit& unit, bool one) {
  const bool noun_follows =
      in.space(unit.end) && in.letter(unit.end + 1) && !is_function_word(word_after(in, unit.end).word);
  const bool describes =
      !unit.is_sign && (describes_noun(in, begin, unit.end) || (unit.is_glued && unit.is_length && noun_follows));
  return one || describes || unit.is_hyphen ? unit.singular : unit.plural;
}

// Behind "400m" these show meters.
constexpr std::string_view kSports =
    " hurdles sprints freestyle races heats finals semifinals runners sprinters swimmers relays dashes medals titles "
    "records events champions distances trials ";

// "100m people", "3bn", "250k followers"; in "5K race" and "100m sprint" the letter is none.
size_t read_scaled(const Input& in, size_t i, const Number& number, const NormalizeOptions& options, Output& out) {
  const auto scale = parse_scale(in, number.end);
  if (!scale || in.at(number.end) == '-' || scale->word == "hundred") return 0;
  if (in.at(number.end) == ' ' && in.letter(number.end + 1) && scale->end - number.end > 4)
    return 0;  // the word stands there
  const char32_t letter = in.at(number.end);
  if (in.matches(number.end, "mm")) return 0;
  const bool is_count =
      plural_follows(in, scale->end) && scale->word != "trillion" && !(letter == 'K' && number.whole.size() == 1);
  if (scale->is_letter && (!is_count || (letter == 'm' && word_after(in, scale->end).is(kSports)))) return 0;
  out.rule("scale");
  out.numbers(number_words(number, options) + " " + std::string(scale->word), i, scale->end);
  return scale->end;
}

// Lengths of one thing have as many figures, or one more or fewer: 9 × 12 meters, not 2 × 5280 feet.
bool are_near(const Number& a, const Number& b) {
  return std::max(a.whole.size(), b.whole.size()) <= std::min(a.whole.size(), b.whole.size()) + 1;
}

// "12 x 15 ft", "4x4", "1920x1080", "8.5 × 11 in.".
size_t read_dimensions(const Input& in, size_t i, const Number& first, const NormalizeOptions& options, Output& out) {
  size_t at = in.at(first.end) == ' ' ? first.end + 1 : first.end;
  const bool is_spaced = at > first.end;
  if (!is_times(in, at) || in.space(at + 1) != is_spaced) return 0;
  const bool is_sign = in.at(at) == U'×';
  auto next = parse_number(in, is_spaced ? at + 2 : at + 1);
  if (!next) return 0;
  const bool are_sides = are_near(first, *next) && !(i > 1 && in.at(i - 1) == ' ' && in.at(i - 2) == '=');
  std::string words = plain_words(in, i, first, options);
  size_t end = first.end;
  const size_t behind = in.skip_spaces(next->end);
  const std::string_view by = is_spaced && in.at(behind) == '=' ? " times " : " by ";  // "5 x 5 = 25"
  for (int k = 0; next && k < 4; ++k) {
    const bool is_label = !next->grouped && next->decimals.empty() && next->whole.size() == 4;
    words += std::string(by) + (is_label ? in_label(next->whole) : number_words(*next, options));
    end = next->end;
    at = in.at(end) == ' ' ? end + 1 : end;
    if (!is_times(in, at)) break;
    next = parse_number(in, in.at(at + 1) == ' ' ? at + 2 : at + 1);
  }
  const auto unit = parse_unit(in, end);
  const bool is_inches = !unit && is_inch_mark(in, end) && !in_quotation(in, i, '"');
  const bool is_product = is_spaced || in.at(end) == '^' || in.at(in.skip_spaces(end)) == '=';
  if (is_sign && !unit && !is_inches && is_product && (!are_sides || !word_after(in, end).is(kLengthUnits))) return 0;
  if (unit) {
    words += " " + unit_words(in, i, *unit, false);
    end = unit->end;
  } else if (is_inches) {
    words += describes_noun(in, i, end + 1) ? " inch" : " inches";
    ++end;
  } else if (in.letter(end)) {
    return 0;
  }
  out.rule("unit");
  out.numbers(words, i, end);
  return end;
}

size_t ordinal_end(const Input& in, const Number& number) {
  if (!number.decimals.empty() || number.whole.empty()) return 0;
  for (const std::string_view suffix : {"st", "nd", "rd", "th"}) {
    if (in.matches(number.end, suffix) && in.ends_word(number.end + 2)) return number.end + 2;
  }
  return 0;
}

// "21st", "1st-3rd".
size_t read_ordinal(const Input& in, size_t i, const Number& number, const NormalizeOptions& options, Output& out) {
  size_t end = ordinal_end(in, number);
  if (end == 0) return 0;
  std::string words = ordinal(number.whole, {options.british});
  out.rule("ordinal");
  if (in.dash(end) && in.digit(end + 1)) {
    if (const auto high = parse_number(in, end + 1)) {
      if (const size_t second = ordinal_end(in, *high); second > 0) {
        words += " to " + ordinal(high->whole, {options.british});
        end = second;
      }
    }
  }
  out.numbers(words, i, end);
  return end;
}

constexpr std::string_view kGameWords =
    " won win wins winning lost lose loses losing beat beats drew draw drawn led lead leads leading trailed tied score "
    "scored finished ended defeated ";

// Digits behind a dash, where a range may end.
size_t range_end(const Input& in, size_t at, const Number& low) {
  if (in.at(at) == ' ' && in.at(at + 1) == U'–' && in.at(at + 2) == ' ') return at + 3;
  if (in.at(at) == ' ' && in.at(at + 1) == '-' && in.at(at + 2) == ' ') {  // "10 - 20 people", no difference
    const auto high = parse_number(in, at + 3);
    return high && high->whole.size() >= low.whole.size() && high->whole > low.whole ? at + 3 : 0;
  }
  return in.dash(at) ? at + 1 : 0;
}

// "10-20", "1990–1995", "3-4 km", "5-10%", "1.5-2x", "2-0".
size_t read_range(const Input& in, size_t i, const Number& low, const NormalizeOptions& options, Output& out) {
  const auto low_unit = parse_unit(in, low.end);
  const bool has_unit = low_unit && !(in.at(low.end) == '-');
  const size_t behind = range_end(in, has_unit ? low_unit->end : low.end, low);
  if (behind == 0) return 0;
  const auto high = parse_number(in, behind);
  if (!high || in.dash(high->end)) return 0;
  const auto unit = parse_unit(in, high->end);
  const bool times = is_times(in, high->end) && in.at(high->end) != U'×' && in.ends_word(high->end + 1);
  if (in.letter(high->end) && !unit && !times) return 0;
  if (has_unit && !unit) return 0;
  const size_t next = in.skip_spaces(high->end);
  if (in.at(next) == '=' && !has_unit) return 0;                                              // a difference
  if (in.at(high->end) == '/' && low.whole.size() == 1 && high->whole.size() == 1) return 0;  // "1-1/2"
  out.rule("range");
  std::string words;
  const bool is_saying = (low.whole == "50" && high->whole == "50") || (low.whole == "24" && high->whole == "7");
  if (is_saying && !unit && !times && high->decimals.empty()) {  // "a 50-50 chance"
    out.numbers(cardinal(low.whole) + " " + cardinal(high->whole), i, high->end);
    return high->end;
  }
  const bool is_year = low.whole.size() == 4 && low.whole >= "1100" && low.whole <= "2099" && !low.grouped;
  if (is_year && high->whole.size() == 2 && high->decimals.empty() && !unit) {  // 1914-18
    words = year(low.whole, {options.british}) + " to " +
            (high->whole[0] == '0' ? with_oh(high->whole) : cardinal(high->whole));
    out.numbers(words, i, high->end);
    return high->end;
  }
  constexpr std::string_view kModels = " boeing airbus embraer antonov bombardier canadair ";
  if (low.whole.size() == 3 && high->whole.size() == 3 && comes_after(in, i, kModels, " ", 1)) {  // "Boeing 747-400"
    out.numbers(in_label(low.whole) + " " + in_label(high->whole), i, high->end);
    return high->end;
  }
  words = has_unit ? number_words(low, options) : plain_words(in, i, low, options);
  if (has_unit && (low_unit->is_sign || low_unit->plural != unit->plural)) words += " " + low_unit->plural;
  const bool is_nil =
      options.british && high->whole == "0" && comes_after(in, i, kGameWords, " by it the game match them ", 4);
  words += " to " + (is_nil          ? "nil"
                     : unit || times ? number_words(*high, options)
                                     : plain_words(in, i, *high, options));
  size_t end = high->end;
  if (unit) {
    words += " " + unit_words(in, i, *unit, false);
    end = unit->end;
  } else if (times) {
    words += " times";
    ++end;
  }
  out.numbers(words, i, end);
  return end;
}

}  // namespace

size_t read_measure(const Input& in, size_t i, const NormalizeOptions& options, Output& out) {
  const bool starts = in.digit(i) || (in.at(i) == '.' && in.digit(i + 1));
  if (!starts || !in.begins_word(i) || (i > 1 && in.at(i - 1) == '.' && in.digit(i - 2))) return 0;
  const auto number = parse_number(in, i);
  if (!number) return 0;
  out.rule("unit");
  if (const size_t end = read_feet(in, i, *number, options, out); end > 0) return end;
  if (const size_t end = read_dimensions(in, i, *number, options, out); end > 0) return end;
  if (const size_t end = read_range(in, i, *number, options, out); end > 0) return end;
  if (const size_t end = read_scaled(in, i, *number, options, out); end > 0) return end;
  if (const size_t end = read_ordinal(in, i, *number, options, out); end > 0) return end;
  if (is_decade(*number) && in.at(number->end) == 's') return 0;
  if (const auto unit = parse_unit(in, number->end)) {
    out.rule("unit");
    if (const size_t end = read_feet_and_inches(in, i, *number, *unit, options, out); end > 0) return end;
    out.numbers(number_words(*number, options) + " " + unit_words(in, i, *unit, number->one()), i, unit->end);
    return unit->end;
  }
  return 0;
}

}  // namespace syrinx::text
