// Words that the lexicon does not have as they are written, rewritten before they are tagged and said: in capitals,
// acronyms, names, with accents, contracted twice, lengthened.  Rules are named in Token::rule (docs/cli.md).
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "models/g2p/lexicon.h"
#include "models/g2p/phoneme.h"
#include "text/speech/normalize.h"

namespace syrinx::g2p {

struct WordFormsContext {
  std::string_view source;  // the text that the tokens' ranges point into
  const Lexicon& lexicon;
  bool british = false;
  std::function<bool(std::string_view)> is_own_word;   // left alone; may be empty
  std::function<Phonemes(std::string_view word)> say;  // any word, by the network if need be
};

// Tokens of these kinds come out: kLetters with an ending ("IDs"), kPhonemes with a rule's name, kWord in lower case
// where capitals only shout.  The work is linear in the text.
std::vector<text::Token> read_word_forms(const WordFormsContext& context, std::vector<text::Token> tokens);

}  // namespace syrinx::g2p
