// Which words of a text stand in a run of capitals (a headline, shouting), where capitals say nothing about a word.
#pragma once

#include <vector>

#include "models/g2p/known_words.h"
#include "text/speech/normalize.h"

namespace syrinx::g2p {

// One flag a token.  A run is a sentence in capitals with a known word in it, or part of one with two.
std::vector<bool> find_capital_runs(const std::vector<text::Token>& tokens, const KnownWords& known);

bool ends_sentence(const text::Token& token);

}  // namespace syrinx::g2p
