// Words in capitals: spelled, said or shouted; and the letter A.
#pragma once

#include <string_view>
#include <vector>

#include "models/g2p/acronyms.h"
#include "models/g2p/known_words.h"
#include "models/g2p/word_forms.h"

namespace syrinx::g2p {

// A word in capitals and the ending that is none of it: "IDs", "MPs'", "NASA's".
struct CutWord {
  std::string_view base;
  std::string_view ending;  // "", "s" or "'s"
};
CutWord cut_ending(std::string_view word);

class CapitalForms {
 public:
  // Both arguments must outlive it.
  CapitalForms(const WordFormsContext& context, const KnownWords& known) : context_(context), known_(known) {}

  // Rewrites `token`, which is tokens[i]; false where its capitals say nothing.  `in_capitals`: it stands in a run.
  bool read(const std::vector<text::Token>& tokens, size_t i, bool in_capitals, text::Token& token) const;

 private:
  bool read_acronym(const Acronym& acronym, const Neighbours& neighbours, std::string_view ending,
                    text::Token& token) const;
  bool read_known(bool in_capitals, text::Token& token) const;
  bool read_plural(bool in_capitals, text::Token& token) const;

  const WordFormsContext& context_;
  const KnownWords& known_;
};

}  // namespace syrinx::g2p
