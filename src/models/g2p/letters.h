// Groups of letters that are said one by one, with the ending of a plural or a possessive: "IDs", "U.K.'s", "p's".
#pragma once

#include <string_view>

#include "models/g2p/word_rules.h"
#include "text/speech/normalize.h"

namespace syrinx::g2p {

// Bytes of the ending, "s" behind a capital or "'s"; 0 for none.
size_t letters_ending(std::string_view letters);

// `token.phonemes`, where there are any, are those of the letters without the ending.
Spoken say_letters(const text::Token& token, const WordRules& rules);

}  // namespace syrinx::g2p
