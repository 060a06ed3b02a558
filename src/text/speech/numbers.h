// Numbers as English words, in lower case, separated by single spaces.  Arguments are ASCII digits, of any length up to
// kMaxScaledDigits; longer ones are read digit by digit.
#pragma once

#include <string>
#include <string_view>

namespace syrinx::text {

inline constexpr size_t kMaxScaledDigits = 18;  // up to quadrillions

struct NumberStyle {
  bool with_and = false;  // "one hundred and five", the British way
};

std::string cardinal(std::string_view digits, NumberStyle style = {});  // "1204": one thousand two hundred four
std::string ordinal(std::string_view digits, NumberStyle style = {});   // "21": twenty first
// "1905": nineteen oh five; "2009": two thousand nine.
std::string year(std::string_view digits, NumberStyle style = {});
std::string one_by_one(std::string_view digits);  // "907": nine zero seven
// After a letter ("A320", "F-16", "B52"): three twenty, sixteen, fifty two; digit by digit with a leading zero or four.
std::string in_a_name(std::string_view digits);
std::string with_oh(std::string_view digits);         // digit by digit, as postcodes and years: "nine oh two one oh"
std::string in_label(std::string_view digits);        // "Room 214", "RTX 4090": two fourteen, forty ninety
std::string to_the_power(std::string_view exponent);  // "2": squared, "-19": to the minus nineteen
std::string plural(std::string_view words);           // "nineteen nineties"
std::string to_ordinal(std::string_view cardinal_words);  // the last word made ordinal
// Digits without leading zeros ("007" gives "7", "000" gives "0").
std::string_view significant(std::string_view digits);
bool is_one(std::string_view digits);

// Value of a canonical Roman numeral in capitals below 90, or 0.
int roman_value(std::string_view letters);

}  // namespace syrinx::text
