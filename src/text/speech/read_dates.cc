// Dates: 2024-03-15, 3/15/2024, on 6/15, March 15, 2024, May 3-7, 15 March, 2024-11-05T14:30:00Z.
#include <array>

#include "text/speech/context.h"
#include "text/speech/numbers.h"
#include "text/speech/readers.h"

namespace syrinx::text {
namespace {

constexpr std::array<std::string_view, 12> kMonths = {"January",   "February", "March",    "April",
                                                      "May",       "June",     "July",     "August",
                                                      "September", "October",  "November", "December"};

// "March fifteenth, twenty twenty four"; British "the fifteenth of March, twenty twenty four".
std::string date_words(int year_number, int month, int day, const NormalizeOptions& options) {
  const std::string name(month_name(month));
  const std::string number = ordinal(std::to_string(day));
  std::string words = options.british ? "the " + number + " of " + name : name + " " + number;
  if (year_number >= 1000) {
    words += " , " + year(std::to_string(year_number), {options.british});
  } else if (year_number >= 0) {
    std::string low = std::to_string(year_number);
    words += " , " + (year_number < 10 ? "oh " + cardinal(low) : cardinal(low));
  }
  return words;
}

bool is_date(int month, int day) { return month >= 1 && month <= 12 && day >= 1 && day <= 31; }

// Behind the day of a month: "-7" of "May 3-7".
size_t read_last_day(const Input& in, size_t i, int first, Output& out);

// End of a year of four digits at `i`, or 0.
size_t year_end(const Input& in, size_t i) {
  const size_t end = in.digits_end(i);
  return end - i == 4 && in.at(i) != '0' && in.ends_word(end) && !(in.at(end) == '.' && in.digit(end + 1)) ? end : 0;
}

// Behind a day: its year, after a comma or white space; writes ", twenty ten".
size_t read_year_after(const Input& in, size_t i, const NormalizeOptions& options, Output& out) {
  size_t at = i;
  if (in.at(at) == ',') ++at;
  if (in.at(at) != ' ') return 0;
  ++at;
  const size_t end = year_end(in, at);
  if (end == 0) return 0;
  if (in.at(i) == ',') {
    out.punctuation(',', i, i + 1);
    out.space();
  }
  out.numbers(year(in.ascii(at, end), {options.british}), at, end);
  return end;
}

// One or two digits, with or without st, nd, rd, th: end, or 0.
size_t day_end(const Input& in, size_t i, int& day) {
  size_t end = in.digits_end(i);
  if (end == i || end - i > 2) return 0;
  day = in.value(i, end);
  if (in.matches(end, "st") || in.matches(end, "nd") || in.matches(end, "rd") || in.matches(end, "th")) end += 2;
  return day >= 1 && day <= 31 && in.ends_word(end) ? end : 0;
}

size_t read_last_day(const Input& in, size_t i, int first, Output& out) {
  int last = 0;
  if (in.at(i) != '-' && in.at(i) != U'–') return i;
  const size_t end = day_end(in, i + 1, last);
  if (end == 0 || last <= first) return i;
  out.numbers("to " + ordinal(std::to_string(last)), i, end);
  return end;
}

constexpr std::string_view kBeforeDate = " on until till due dated ";
constexpr std::string_view kBeforeEither = " by before after since from to through ";  // a date or a fraction

// Is a/b more likely a part than a day: "fell by 2/3", but "by 6/15", "from 9/4"?
bool is_part(int a, int b) {
  const bool is_common = b <= 6 || b == 8 || b == 10 || b == 12 || b == 16 || b == 20;
  return a < b && is_common;
}

// "on 3/4", "by 6/15"; "05/2028".
size_t read_short_date(const Input& in, size_t i, size_t slash, const NormalizeOptions& options, Output& out) {
  const size_t end = in.digits_end(slash + 1);
  if (end == slash + 1 || !in.ends_word(end) || in.at(end) == '/' || (in.at(end) == '.' && in.digit(end + 1))) return 0;
  const int a = in.value(i, slash);
  const int b = in.value(slash + 1, end);
  if (end - slash == 5 && a >= 1 && a <= 12 && b >= 1900 && b <= 2099) {
    out.numbers(std::string(month_name(a)) + " " + year(std::to_string(b), {options.british}), i, end);
    return end;
  }
  const Near before = word_before(in, i);
  const bool is_named = before.is(kBeforeDate) || (before.is(kBeforeEither) && !is_part(a, b));
  if (end - slash > 3 || !is_named || (a == 9 && b == 11)) return 0;
  const Near next = word_after(in, end);
  if (next.word == "of" || parse_unit(in, end) || plural_follows(in, end) || next.is(" cup inch mile hour time "))
    return 0;
  const bool day_first = (options.british && b <= 12) || a > 12;
  if (day_first ? !is_date(b, a) : !is_date(a, b)) return 0;
  out.numbers(date_words(-1, day_first ? b : a, day_first ? a : b, options), i, end);
  return end;
}

}  // namespace

std::string_view month_name(int number) { return kMonths[static_cast<size_t>(number - 1)]; }

Month parse_month(const Input& in, size_t i) {
  if (!in.upper(i)) return {};
  const size_t end = in.letters_end(i);
  const std::string word = ascii_lower(in.ascii(i, end));
  if (word.size() < 3) return {};
  for (size_t m = 0; m < kMonths.size(); ++m) {
    const std::string name = ascii_lower(kMonths[m]);
    if (word == name) return {static_cast<int>(m) + 1, end};
    if (word == name.substr(0, 3) || (word == "sept" && m == 8)) {
      return {static_cast<int>(m) + 1, in.at(end) == '.' ? end + 1 : end};
    }
  }
  return {};
}

size_t read_date(const Input& in, size_t i, const NormalizeOptions& options, Output& out) {
  if (!in.digit(i) || !in.begins_word(i)) return 0;
  const size_t first = in.digits_end(i);
  const char32_t sign = in.at(first);
  if (sign != '-' && sign != '/' && sign != '.') return 0;
  if (sign == '/' && first - i <= 2) {
    if (const size_t end = read_short_date(in, i, first, options, out); end > 0) return end;
  }
  const size_t second = in.digits_end(first + 1);
  if (second == first + 1 || second - first > 3 || in.at(second) != sign) return 0;
  const size_t third = in.digits_end(second + 1);
  if (third == second + 1 || !in.ends_word(third) || (in.at(third) == sign && in.digit(third + 1))) return 0;
  const int a = in.value(i, first);
  const int b = in.value(first + 1, second);
  const int c = in.value(second + 1, third);
  if (first - i == 4 && third - second - 1 <= 2 && is_date(b, c)) {
    out.numbers(date_words(a, b, c, options), i, third);
    return third;
  }
  const size_t year_digits = third - second - 1;
  if (first - i > 2 || (year_digits != 4 && !(year_digits == 2 && sign == '/'))) return 0;
  const bool day_first = (options.british || sign == '.' || a > 12) && b <= 12;
  if (day_first ? !is_date(b, a) : !is_date(a, b)) return 0;
  out.numbers(date_words(c, day_first ? b : a, day_first ? a : b, options), i, third);
  return third;
}

size_t read_timestamp(const Input& in, size_t i, const NormalizeOptions& options, Output& out) {
  if (in.digits_end(i) != i + 4 || !in.begins_word(i) || in.at(i + 4) != '-' || in.digits_end(i + 5) != i + 7 ||
      in.at(i + 7) != '-' || in.digits_end(i + 8) != i + 10)
    return 0;
  const bool is_iso = in.at(i + 10) == 'T' || (in.at(i + 10) == ' ' && in.at(i + 13) == ':');
  const int month = in.value(i + 5, i + 7);
  const int day = in.value(i + 8, i + 10);
  const size_t time = i + 11;
  if (!is_iso || !is_date(month, day) || in.digits_end(time) != time + 2 || in.at(time + 2) != ':' ||
      in.digits_end(time + 3) != time + 5)
    return 0;
  const int hours = in.value(time, time + 2);
  const int minutes = in.value(time + 3, time + 5);
  if (hours > 24 || minutes > 59) return 0;
  size_t end = time + 5;
  int seconds = 0;
  if (in.at(end) == ':' && in.digits_end(end + 1) == end + 3) {
    seconds = in.value(end + 1, end + 3);
    end += 3;
    if (in.at(end) == '.' && in.digit(end + 1)) end = in.digits_end(end + 1);
  }
  std::string words = date_words(in.value(i, i + 4), month, day, options) + " , " + clock_words(hours, minutes);
  if (seconds > 0) words += " and " + cardinal(std::to_string(seconds)) + (seconds == 1 ? " second" : " seconds");
  if (in.at(end) == 'Z' && in.ends_word(end + 1)) ++end;
  if (!in.ends_word(end)) return 0;
  if ((in.at(end) == '+' || in.at(end) == '-') && in.digits_end(end + 1) == end + 3 && in.at(end + 3) == ':') {
    words += std::string(in.at(end) == '+' ? " plus " : " minus ") + cardinal(in.ascii(end + 1, end + 3));
    end = in.digits_end(end + 4);
  }
  out.numbers(words, i, end);
  return end;
}

namespace {

// "In May 20 people died": a count behind a month, not its day.
bool counts_things(const Input& in, size_t month, size_t end) {
  if (!in.digit(end - 1)) return false;  // "5th"
  constexpr std::string_view kPersons = " people men women children persons staff police ";
  if (word_after(in, end).is(kPersons)) return true;
  return word_before(in, month).word == "in" && plural_follows(in, end);
}

}  // namespace

size_t read_month_date(const Input& in, size_t i, const NormalizeOptions& options, Output& out) {
  if (!in.begins_word(i)) return 0;
  int day = 0;
  if (in.upper(i)) {
    const Month month = parse_month(in, i);
    if (month.number == 0 || in.at(month.end) != ' ') return 0;
    const std::string name(month_name(month.number));
    if (size_t end = day_end(in, month.end + 1, day);
        end > 0 && !(in.at(end) == ':' && in.digit(end + 1)) && !counts_things(in, i, end)) {
      out.word(name, i, month.end);
      out.numbers(ordinal(std::to_string(day)), month.end + 1, end);
      end = read_last_day(in, end, day, out);
      const size_t after = read_year_after(in, end, options, out);
      return after > 0 ? after : end;
    }
    if (const size_t end = year_end(in, month.end + 1); end > 0) {
      out.word(name, i, month.end);
      out.numbers(year(in.ascii(month.end + 1, end), {options.british}), month.end + 1, end);
      return end;
    }
    return 0;
  }
  const size_t end = day_end(in, i, day);
  if (end == 0) return 0;
  size_t at = end;
  if (in.matches(at, " of ")) at += 3;
  if (in.at(at) != ' ') return 0;
  const Month month = parse_month(in, at + 1);
  if (month.number == 0) return 0;
  const bool has_the = !out.tokens().empty() && ascii_lower(out.tokens().back().text) == "the";
  out.numbers((has_the ? "" : "the ") + ordinal(std::to_string(day)) + " of", i, end);
  out.word(std::string(month_name(month.number)), at + 1, month.end);
  const size_t after = read_year_after(in, month.end, options, out);
  return after > 0 ? after : month.end;
}

}  // namespace syrinx::text
