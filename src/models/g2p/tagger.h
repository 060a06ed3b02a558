// Parts of speech, as far as they change a pronunciation: a table of the closed classes and a few looks at the
// neighbours.  No statistics.  Specification: Kokoro, section 8.4.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/speech/normalize.h"

namespace syrinx::g2p {

enum class Tag : uint8_t {
  kNoun,
  kProperNoun,
  kVerb,
  kPast,
  kParticiple,
  kPresent,
  kAdjective,
  kAdverb,
  kDeterminer,
  kPronoun,
  kPossessive,
  kPreposition,
  kTo,
  kModal,
  kAuxiliary,
  kConjunction,
  kNumber,
  kQuestion,
  kPunctuation,
};

// The name that the lexicon's variants go by ("VBD"), and that of the wider class ("VERB"); empty where it has none.
std::string_view lexicon_name(Tag tag);
std::string_view lexicon_class(Tag tag);

// One tag a token.
std::vector<Tag> tag_tokens(const std::vector<text::Token>& tokens);

}  // namespace syrinx::g2p
