// Contractions that the lexicon lacks, lengthened words, single letters with an ending, acronyms and abbreviations in
// small letters.
#pragma once

#include <vector>

#include "models/g2p/known_words.h"
#include "models/g2p/word_forms.h"

namespace syrinx::g2p {

// Writes `token`, rewritten where it is one of them: "shouldn't've" as "shouldn't" and "have", "sooo" as "so", "p's" as
// a letter.
void read_small_form(text::Token token, const WordFormsContext& context, const KnownWords& known,
                     std::vector<text::Token>& out);

}  // namespace syrinx::g2p
