// The readers of normalize(): each looks at one place of the input and, if what stands there is its business, writes
// tokens and returns the position behind it; otherwise returns 0 and writes nothing.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "text/speech/scan.h"

namespace syrinx::text {

using ReadFunction = size_t (*)(const Input&, size_t, const NormalizeOptions&, Output&);

size_t read_address(const Input& in, size_t i, const NormalizeOptions& options, Output& out);  // URL, e-mail
size_t read_code(const Input& in, size_t i, const NormalizeOptions& options, Output& out);     // files, names, C#
size_t read_formula(const Input& in, size_t i, const NormalizeOptions& options, Output& out);  // H2SO4
size_t read_postcode(const Input& in, size_t i, const NormalizeOptions& options, Output& out);
size_t read_digits(const Input& in, size_t i, const NormalizeOptions& options, Output& out);  // PIN, card, ISBN, short
size_t read_phone(const Input& in, size_t i, const NormalizeOptions& options, Output& out);
size_t read_verse(const Input& in, size_t i, const NormalizeOptions& options, Output& out);      // 1 Samuel, Psalm 23:1
size_t read_timestamp(const Input& in, size_t i, const NormalizeOptions& options, Output& out);  // 2024-11-05T14:30Z
size_t read_date(const Input& in, size_t i, const NormalizeOptions& options, Output& out);       // ISO, slashed
size_t read_month_date(const Input& in, size_t i, const NormalizeOptions& options, Output& out);
size_t read_day_name(const Input& in, size_t i, const NormalizeOptions& options, Output& out);  // "Sat.", "Mon-Fri"
size_t read_time(const Input& in, size_t i, const NormalizeOptions& options, Output& out);
size_t read_money(const Input& in, size_t i, const NormalizeOptions& options, Output& out);  // $5, 5¢, CHF 5, 5 EUR
size_t read_maths(const Input& in, size_t i, const NormalizeOptions& options, Output& out);
size_t read_item_mark(const Input& in, size_t i, const NormalizeOptions& options, Output& out);  // "(ii)", "(a)"
size_t read_measure(const Input& in, size_t i, const NormalizeOptions& options, Output& out);    // 5 km, 6'2", 5-10%
size_t read_number(const Input& in, size_t i, const NormalizeOptions& options, Output& out);     // all other digits
size_t read_roman(const Input& in, size_t i, const NormalizeOptions& options, Output& out);      // after a name
size_t read_abbreviation(const Input& in, size_t i, const NormalizeOptions& options, Output& out);
size_t read_word(const Input& in, size_t i, const NormalizeOptions& options, Output& out);
size_t read_mark(const Input& in, size_t i, const NormalizeOptions& options, Output& out);  // punctuation, signs

// Digits with commas or spaces between groups of three and, behind a point, decimals.
struct Number {
  std::string whole;     // without commas; empty for ".5"
  std::string decimals;  // empty: none
  bool grouped = false;  // had commas or spaces
  size_t end = 0;
  bool one() const { return decimals.empty() && whole == "1"; }
};
std::optional<Number> parse_number(const Input& in, size_t i);
bool is_decade(const Number& number);  // may the s behind it be a plural rather than seconds?  "60s", "1990s"
std::string number_words(const Number& number, const NormalizeOptions& options);  // "twelve point five"

// A number without unit or sign, by what stands around it: a year, a label ("Room 214"), digits, or its value.
std::string plain_words(const Input& in, size_t begin, const Number& number, const NormalizeOptions& options);

// "million", "bn", ... right behind a number (white space between is stepped over); the word, or nothing.
struct Scale {
  std::string_view word;
  size_t end = 0;
  bool is_letter = false;  // one letter, which may be a unit's: "100m"
};
std::optional<Scale> parse_scale(const Input& in, size_t i);

// A unit behind a number at `i` ("km", " GHz", "%", "°C", "kg/m³"), with its word for one and for more.
struct Unit {
  std::string singular;
  std::string plural;
  size_t end = 0;  // behind the full stop of its abbreviation, where that does not also end the sentence
  bool is_glued = false;
  bool is_hyphen = false;  // "20-ft": describes what follows
  bool is_length = false;  // or an amount of data: describes what follows it, "35mm film"
  bool is_sign = false;
  bool is_letter = false;
};
std::optional<Unit> parse_unit(const Input& in, size_t i);

// "/kg", "/night": the word behind "per".
struct Per {
  std::string unit;
  size_t end = 0;
};
std::optional<Per> parse_per(const Input& in, size_t i);

// Is the numeral in the brackets at `open` the mark of an item: "(ii)", and "(i)" or "(vi)" where a neighbour is near.
bool is_in_list(const Input& in, size_t open, size_t close);

std::string clock_words(int hours, int minutes);  // "fourteen thirty", "six o'clock"

// A month by its name or abbreviation at `i`; the point of the abbreviation is part of it.  1 to 12, 0 for none.
struct Month {
  int number = 0;
  size_t end = 0;
};
Month parse_month(const Input& in, size_t i);
std::string_view month_name(int number);  // "January" for 1

}  // namespace syrinx::text
