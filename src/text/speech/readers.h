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
size_t read_phone(const Input& in, size_t i, const NormalizeOptions& options, Output& out);
size_t read_date(const Input& in, size_t i, const NormalizeOptions& options, Output& out);  // ISO, slashed
size_t read_month_date(const Input& in, size_t i, const NormalizeOptions& options, Output& out);
size_t read_time(const Input& in, size_t i, const NormalizeOptions& options, Output& out);
size_t read_money(const Input& in, size_t i, const NormalizeOptions& options, Output& out);  // before: $5, or after: 5¢
size_t read_number(const Input& in, size_t i, const NormalizeOptions& options, Output& out);  // all other digits
size_t read_roman(const Input& in, size_t i, const NormalizeOptions& options, Output& out);   // after a name
size_t read_abbreviation(const Input& in, size_t i, const NormalizeOptions& options, Output& out);
size_t read_word(const Input& in, size_t i, const NormalizeOptions& options, Output& out);
size_t read_mark(const Input& in, size_t i, const NormalizeOptions& options, Output& out);  // punctuation, signs

// Digits with commas between groups of three and, behind a point, decimals.
struct Number {
  std::string whole;     // without commas; empty for ".5"
  std::string decimals;  // empty: none
  bool grouped = false;  // had commas
  size_t end = 0;
  bool one() const { return decimals.empty() && whole == "1"; }
};
std::optional<Number> parse_number(const Input& in, size_t i);
std::string number_words(const Number& number, const NormalizeOptions& options);  // "twelve point five"

// "million", "bn", ... right behind a number (white space between is stepped over); the word, or nothing.
struct Scale {
  std::string_view word;
  size_t end = 0;
};
std::optional<Scale> parse_scale(const Input& in, size_t i);

// A unit behind a number at `i` ("km", " GHz", "%", "°C"), with its word for one and for more.
struct Unit {
  std::string_view singular;
  std::string_view plural;
  size_t end = 0;
};
std::optional<Unit> parse_unit(const Input& in, size_t i);

// A month by its name or abbreviation at `i`; the point of the abbreviation is part of it.  1 to 12, 0 for none.
struct Month {
  int number = 0;
  size_t end = 0;
};
Month parse_month(const Input& in, size_t i);

}  // namespace syrinx::text
