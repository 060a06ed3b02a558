// Dates and times: 2024-03-15, 3/15/2024, March 15, 2024, 15 March, 3:05 pm, 15:30, 5 p.m.
#include <array>

#include "text/speech/numbers.h"
#include "text/speech/readers.h"

namespace syrinx::text {
namespace {

constexpr std::array<std::string_view, 12> kMonths = {"january",   "february", "march",    "april",
                                                      "may",       "june",     "july",     "august",
                                                      "september", "october",  "november", "december"};

std::string capitalised(std::string_view word) {
  std::string out(word);
  out[0] = ascii_upper(out[0]);
  return out;
}

int value_of(const Input& in, size_t begin, size_t end) {
  int value = 0;
  for (size_t i = begin; i < end && end - begin <= 4; ++i) value = value * 10 + static_cast<int>(in.at(i) - '0');
  return end - begin <= 4 ? value : -1;
}

// "March fifteenth, twenty twenty four"
std::string date_words(int year_number, int month, int day) {
  std::string words = capitalised(kMonths[static_cast<size_t>(month - 1)]) + " " + ordinal(std::to_string(day));
  if (year_number >= 1000) {
    words += " , " + year(std::to_string(year_number));
  } else if (year_number >= 0) {
    std::string low = std::to_string(year_number);
    words += " , " + (year_number < 10 ? "oh " + cardinal(low) : cardinal(low));
  }
  return words;
}

bool is_date(int month, int day) { return month >= 1 && month <= 12 && day >= 1 && day <= 31; }

// End of a year of four digits at `i`, or 0.
size_t year_end(const Input& in, size_t i) {
  const size_t end = in.digits_end(i);
  return end - i == 4 && in.at(i) != '0' && in.ends_word(end) && !(in.at(end) == '.' && in.digit(end + 1)) ? end : 0;
}

// Behind a day: its year, after a comma or white space; writes ", twenty ten".
size_t read_year_after(const Input& in, size_t i, Output& out) {
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
  out.numbers(year(in.ascii(at, end)), at, end);
  return end;
}

// One or two digits, with or without st, nd, rd, th: end, or 0.
size_t day_end(const Input& in, size_t i, int& day) {
  size_t end = in.digits_end(i);
  if (end == i || end - i > 2) return 0;
  day = value_of(in, i, end);
  if (in.matches(end, "st") || in.matches(end, "nd") || in.matches(end, "rd") || in.matches(end, "th")) end += 2;
  return day >= 1 && day <= 31 && in.ends_word(end) ? end : 0;
}

// "am", "p.m.", behind white space or not: end, or 0; `letters` is "AM" or "PM".
size_t half_of_day(const Input& in, size_t i, std::string& letters) {
  if (in.at(i) == ' ') ++i;
  const bool pm = in.matches(i, "p");
  if (!pm && !in.matches(i, "a")) return 0;
  const bool points = in.at(i + 1) == '.';
  const size_t m = points ? i + 2 : i + 1;
  if (!in.matches(m, "m") || !in.ends_word(m + 1)) return 0;
  letters = pm ? "PM" : "AM";
  if (!points || in.at(m + 1) != '.') return m + 1;
  // The point stays where it also ends the sentence.
  const size_t next = in.skip_spaces(m + 2);
  return next >= in.size() || (in.space(m + 2) && in.upper(next)) ? m + 1 : m + 2;
}

}  // namespace

Month parse_month(const Input& in, size_t i) {
  if (!in.upper(i)) return {};
  const size_t end = in.letters_end(i);
  const std::string word = ascii_lower(in.ascii(i, end));
  if (word.size() < 3) return {};
  for (size_t m = 0; m < kMonths.size(); ++m) {
    if (word == kMonths[m]) return {static_cast<int>(m) + 1, end};
    if (word == kMonths[m].substr(0, 3) || (word == "sept" && m == 8)) {
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
  const size_t second = in.digits_end(first + 1);
  if (second == first + 1 || second - first > 3 || in.at(second) != sign) return 0;
  const size_t third = in.digits_end(second + 1);
  if (third == second + 1 || !in.ends_word(third) || (in.at(third) == sign && in.digit(third + 1))) return 0;
  const int a = value_of(in, i, first);
  const int b = value_of(in, first + 1, second);
  const int c = value_of(in, second + 1, third);
  if (first - i == 4 && third - second - 1 <= 2 && is_date(b, c)) {
    out.numbers(date_words(a, b, c), i, third);
    return third;
  }
  const size_t year_digits = third - second - 1;
  if (first - i > 2 || (year_digits != 4 && !(year_digits == 2 && sign == '/'))) return 0;
  const bool day_first = (options.british || sign == '.' || a > 12) && b <= 12;
  if (day_first ? !is_date(b, a) : !is_date(a, b)) return 0;
  out.numbers(date_words(c, day_first ? b : a, day_first ? a : b), i, third);
  return third;
}

size_t read_month_date(const Input& in, size_t i, const NormalizeOptions&, Output& out) {
  if (!in.begins_word(i)) return 0;
  int day = 0;
  if (in.upper(i)) {
    const Month month = parse_month(in, i);
    if (month.number == 0 || in.at(month.end) != ' ') return 0;
    const std::string name = capitalised(kMonths[static_cast<size_t>(month.number - 1)]);
    if (const size_t end = day_end(in, month.end + 1, day); end > 0 && !(in.at(end) == ':' && in.digit(end + 1))) {
      out.word(name, i, month.end);
      out.numbers(ordinal(std::to_string(day)), month.end + 1, end);
      const size_t after = read_year_after(in, end, out);
      return after > 0 ? after : end;
    }
    if (const size_t end = year_end(in, month.end + 1); end > 0) {
      out.word(name, i, month.end);
      out.numbers(year(in.ascii(month.end + 1, end)), month.end + 1, end);
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
  out.word(capitalised(kMonths[static_cast<size_t>(month.number - 1)]), at + 1, month.end);
  const size_t after = read_year_after(in, month.end, out);
  return after > 0 ? after : month.end;
}

size_t read_time(const Input& in, size_t i, const NormalizeOptions&, Output& out) {
  if (!in.digit(i) || !in.begins_word(i)) return 0;
  const size_t hours_end = in.digits_end(i);
  if (hours_end - i > 2) return 0;
  const int hours = value_of(in, i, hours_end);
  std::string half;
  const std::string hour_words = cardinal(std::to_string(hours));
  if (in.at(hours_end) != ':') {
    const size_t end = half_of_day(in, hours_end, half);
    if (end == 0 || hours < 1 || hours > 12) return 0;
    out.numbers(hour_words, i, hours_end);
    out.letters(half, hours_end, end);
    return end;
  }
  const size_t minutes_end = in.digits_end(hours_end + 1);
  const size_t digits = minutes_end - hours_end - 1;
  if (digits == 1 && in.ends_word(minutes_end) && !(in.at(minutes_end) == '.' && in.digit(minutes_end + 1))) {
    out.numbers(hour_words + " to " + cardinal(in.ascii(hours_end + 1, minutes_end)), i, minutes_end);  // "16:9"
    return minutes_end;
  }
  const bool half_glued = in.matches(minutes_end, "am") || in.matches(minutes_end, "pm");
  if (digits != 2 || !(in.ends_word(minutes_end) || half_glued)) return 0;
  const int minutes = value_of(in, hours_end + 1, minutes_end);
  if (hours > 24 || minutes > 59) return 0;
  size_t end = minutes_end;
  std::string words = hour_words;
  if (in.at(end) == ':' && in.digits_end(end + 1) == end + 3) {
    const int seconds = value_of(in, end + 1, end + 3);
    words += " " + (minutes < 10 ? "oh " + cardinal(std::to_string(minutes)) : cardinal(std::to_string(minutes)));
    words += " and " + cardinal(std::to_string(seconds)) + (seconds == 1 ? " second" : " seconds");
    end += 3;
  } else if (minutes > 0) {
    words += " " + std::string(minutes < 10 ? "oh " : "") + cardinal(std::to_string(minutes));
  }
  const size_t half_end = half_of_day(in, end, half);
  if (minutes == 0 && half_end == 0 && end == minutes_end) words += hours > 12 || hours == 0 ? " hundred" : " o'clock";
  out.numbers(words, i, end);
  if (half_end == 0) return end;
  out.letters(half, end, half_end);
  return half_end;
}

}  // namespace syrinx::text
