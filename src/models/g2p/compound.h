// Words made of several: "ill-disposed", "McDonald", "half-open".  Specification: Kokoro, section 8.2, step 5.
#pragma once

#include <string_view>
#include <vector>

#include "models/g2p/phoneme.h"

namespace syrinx::g2p {

// Cuts at hyphens, at a small letter before a capital, before the last of several capitals, and takes quotes off the
// ends.  The parts, in order, make up the word.
std::vector<std::string_view> cut_word(std::string_view word);

// Hyphens, points and quotes: a part that says nothing.
bool is_silent(std::string_view part);

struct SaidPart {
  std::string_view written;
  Phonemes phonemes;
};

// Lowers the stress of the weaker half of the parts and joins them.
Phonemes join_parts(std::vector<SaidPart> parts);

}  // namespace syrinx::g2p
