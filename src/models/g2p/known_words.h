// Questions to the lexicon about a word's written form, for the rules of word_forms.h.
#pragma once

#include <string>
#include <string_view>

#include "models/g2p/lexicon.h"

namespace syrinx::g2p {

class KnownWords {
 public:
  // `lexicon` must outlive it.
  KnownWords(const Lexicon& lexicon, bool british) : lexicon_(lexicon), british_(british) {}

  // A word in lower case, or one with an ending.  A short one only of the larger list, for an acronym may be written
  // alike, unless `in_capitals` tells that the text around it is in capitals too.
  bool has(std::string_view lower, bool in_capitals) const;
  // One of several letters lengthened ("sooo"), with each run as long as the lexicon has it; empty where it is none.
  std::string shortened(std::string_view lower) const;
  const Lexicon& lexicon() const { return lexicon_; }

 private:
  const Lexicon& lexicon_;
  bool british_;
};

// Two letters or more, all of them capitals; apostrophes and hyphens may stand between.
bool is_in_capitals(std::string_view word);
// May these letters be said as a word: vowels, and nowhere four consonants or vowels in a row.
bool is_pronounceable(std::string_view lower);

}  // namespace syrinx::g2p
