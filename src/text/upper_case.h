// The full upper-case mapping of Unicode, which may be longer than the character (SpecialCasing.txt, the entries that
// hang on no language and no neighbour).  Pure and thread-safe.
#pragma once

#include <string>

namespace syrinx::text {

// "É" of "é", "SS" of "ß"; the character itself where it has none.
std::u32string upper_case(char32_t c);

}  // namespace syrinx::text
