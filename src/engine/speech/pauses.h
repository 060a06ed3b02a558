// How much of the silence that the model makes around each piece (0.3 to 0.5 s at both ends) is kept, so that pieces
// follow each other like sentences and clauses of one reading.  Specification: Kokoro, section 7.4.
#pragma once

#include <string_view>

#include "audio/fade.h"

namespace syrinx {

// At most 50 ms before the sound; after it 300 ms for the end of a sentence, 200 ms for ; : and a dash, 120 ms for a
// comma, 60 ms where a piece was cut between words.  Decided by the last mark of the piece's phonemes.
TrimRule pause_rule(std::string_view phonemes);

}  // namespace syrinx
