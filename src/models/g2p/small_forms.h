// Contractions that the lexicon lacks, lengthened words, single letters with an ending, acronyms and abbreviations in
// small letters.
#pragma once

#include <string_view>
#include <vector>

#include "models/g2p/known_words.h"
#include "models/g2p/word_forms.h"

namespace syrinx::g2p {

// Writes `token`, rewritten where it is one of them: "shouldn't've" as "shouldn't" and "have", "sooo" as "so", "p's" as
// a letter.
void read_small_form(text::Token token, const WordFormsContext& context, const KnownWords& known,
                     std::vector<text::Token>& out);

// "tv", "json": an acronym of acronyms.def in small letters, and no word of the lexicon.
bool is_small_acronym(std::string_view word, const Lexicon& lexicon);

}  // namespace syrinx::g2p
