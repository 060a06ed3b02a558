#include "text/speech/numbers.h"

#include <algorithm>
#include <array>

namespace syrinx::text {
namespace {

constexpr std::array<std::string_view, 20> kSmall = {
    "zero", "one",    "two",    "three",    "four",     "five",    "six",     "seven",     "eight",    "nine",
    "ten",  "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr std::array<std::string_view, 10> kTens = {"",      "",      "twenty",  "thirty", "forty",
                                                    "fifty", "sixty", "seventy", "eighty", "ninety"};
constexpr std::array<std::string_view, 6> kScales = {"", "thousand", "million", "billion", "trillion", "quadrillion"};

int small_value(std::string_view digits) {
  int value = 0;
  for (const char c : digits) value = value * 10 + (c - '0');
  return value;
}

void add(std::string& out, std::string_view word) {
  if (!out.empty()) out += ' ';
  out += word;
}

void add_below_hundred(std::string& out, int value) {
  if (value < 20) {
    add(out, kSmall[static_cast<size_t>(value)]);
    return;
  }
  add(out, kTens[static_cast<size_t>(value / 10)]);
  if (value % 10 != 0) add(out, kSmall[static_cast<size_t>(value % 10)]);
}

void add_below_thousand(std::string& out, int value, bool with_and) {
  if (value >= 100) {
    add(out, kSmall[static_cast<size_t>(value / 100)]);
    add(out, "hundred");
    if (value % 100 == 0) return;
    if (with_and) add(out, "and");
    value %= 100;
  }
  add_below_hundred(out, value);
}

}  // namespace

std::string_view significant(std::string_view digits) {
  const size_t first = digits.find_first_not_of('0');
  return first == std::string_view::npos ? digits.substr(digits.empty() ? 0 : digits.size() - 1) : digits.substr(first);
}

bool is_one(std::string_view digits) { return significant(digits) == "1"; }

std::string cardinal(std::string_view digits, NumberStyle style) {
  digits = significant(digits);
  if (digits.size() > kMaxScaledDigits) return one_by_one(digits);
  if (digits == "0" || digits.empty()) return "zero";
  std::string out;
  for (size_t groups = (digits.size() + 2) / 3; groups-- > 0;) {
    const size_t end = digits.size() - groups * 3;
    const size_t begin = end > 3 ? end - 3 : 0;
    const int value = small_value(digits.substr(begin, end - begin));
    if (value == 0) continue;
    if (groups == 0 && value < 100 && style.with_and && !out.empty()) add(out, "and");
    add_below_thousand(out, value, style.with_and);
    if (groups > 0) add(out, kScales[groups]);
  }
  return out;
}

std::string to_ordinal(std::string_view words) {
  struct Irregular {
    std::string_view from;
    std::string_view to;
  };
  static constexpr Irregular kIrregular[] = {{"one", "first"},     {"two", "second"},   {"three", "third"},
                                             {"five", "fifth"},    {"eight", "eighth"}, {"nine", "ninth"},
                                             {"twelve", "twelfth"}};
  const size_t gap = words.rfind(' ');
  std::string head(gap == std::string_view::npos ? std::string_view() : words.substr(0, gap + 1));
  const std::string_view last = gap == std::string_view::npos ? words : words.substr(gap + 1);
  for (const Irregular& word : kIrregular) {
    if (last == word.from) return head + std::string(word.to);
  }
  if (last.ends_with("y")) return head + std::string(last.substr(0, last.size() - 1)) + "ieth";
  return head + std::string(last) + "th";
}

std::string ordinal(std::string_view digits, NumberStyle style) { return to_ordinal(cardinal(digits, style)); }

std::string year(std::string_view digits, NumberStyle style) {
  if (digits.size() != 4 || digits[0] == '0') return cardinal(digits, style);
  const std::string_view high = digits.substr(0, 2);
  const std::string_view low = digits.substr(2);
  if (high[1] == '0' && low[0] == '0') return cardinal(digits, style);  // 2000 to 2009, 1000
  std::string out = cardinal(high);
  if (low == "00") return out + " hundred";
  if (low[0] == '0') return out + " oh " + cardinal(low);
  return out + " " + cardinal(low);
}

std::string one_by_one(std::string_view digits) {
  std::string out;
  for (const char c : digits) add(out, kSmall[static_cast<size_t>(c - '0')]);
  return out;
}

std::string with_oh(std::string_view digits) {
  std::string out;
  for (const char c : digits) add(out, c == '0' ? "oh" : kSmall[static_cast<size_t>(c - '0')]);
  return out;
}

std::string in_label(std::string_view digits) {
  return digits.size() == 4 && digits[0] != '0' ? year(digits) : in_a_name(digits);
}

std::string to_the_power(std::string_view exponent) {
  if (exponent == "2") return "squared";
  if (exponent == "3") return "cubed";
  if (exponent.starts_with("-")) return "to the minus " + cardinal(exponent.substr(1));
  return "to the " + ordinal(exponent);
}

std::string in_a_name(std::string_view digits) {
  if (digits.size() > 3 || digits[0] == '0') return one_by_one(digits);
  if (digits.size() < 3 || digits.ends_with("00")) return cardinal(digits);
  const std::string head = one_by_one(digits.substr(0, 1));
  if (digits[1] == '0') return head + " oh " + one_by_one(digits.substr(2));
  return head + " " + cardinal(digits.substr(1));
}

std::string plural(std::string_view words) {
  std::string out(words);
  if (out.ends_with("y")) {
    out.replace(out.size() - 1, 1, "ies");
  } else if (out.ends_with("x")) {
    out += "es";
  } else {
    out += "s";
  }
  return out;
}

int roman_value(std::string_view letters) {
  constexpr std::array<std::string_view, 10> kUnits = {"", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"};
  constexpr std::array<std::string_view, 9> kDecades = {"", "X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX"};
  for (size_t tens = kDecades.size(); tens-- > 0;) {
    if (!letters.starts_with(kDecades[tens])) continue;
    const std::string_view rest = letters.substr(kDecades[tens].size());
    for (size_t units = 0; units < kUnits.size(); ++units) {
      if (rest == kUnits[units]) return static_cast<int>(tens * 10 + units);
    }
  }
  return 0;
}

}  // namespace syrinx::text
