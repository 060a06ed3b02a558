// The currencies of the world by their codes and signs, with the names that are said.
#pragma once

#include <string_view>

namespace syrinx::text {

struct Currency {
  std::string_view code;    // of ISO 4217
  std::string_view nation;  // said where the code is written: "Canadian"; capitals are spelled; may be empty
  std::string_view one, more;
  std::string_view cent, cents;  // the minor unit; empty: none is said
  int minor_digits;
  bool is_word;  // the code is a word or a name as well: "TRY", "ALL"
};

const Currency* currency_of_code(std::string_view code);  // null: none
const Currency* currency_of_sign(char32_t sign);
const Currency* currency_of_dollar(std::string_view letters);      // "US", "HK" of "HK$"
const Currency* currency_of_short_form(std::string_view letters);  // "Rs", "kr"
bool is_currency_sign(char32_t c);

}  // namespace syrinx::text
