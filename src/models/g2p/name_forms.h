// Names, places, phrases and words with accents (names.def).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/g2p/names.h"
#include "models/g2p/word_forms.h"

namespace syrinx::g2p {

class NameForms {
 public:
  // `context` must outlive it.
  explicit NameForms(const WordFormsContext& context) : context_(context) {}

  // Writes the tokens of the name or phrase that begins with tokens[i] and returns how many it takes; 0 for none.
  size_t read(const std::vector<text::Token>& tokens, size_t i, bool in_capitals, std::vector<text::Token>& out) const;
  // A word with accents that no list has, by a respelling of its letters; unchanged where the lexicon has the plain
  // word.
  text::Token read_accents(text::Token token) const;

 private:
  size_t read_phrase(const std::vector<text::Token>& tokens, size_t i, std::vector<text::Token>& out) const;
  bool read_word(const std::vector<text::Token>& tokens, size_t i, bool in_capitals, text::Token& token) const;
  bool read_irish(text::Token& token) const;  // "O'Brien"
  std::string folded(const text::Token& token) const;
  std::string_view written(const text::Token& token) const;
  text::Token said(text::Token token, const Phonemes& phonemes, std::string_view rule) const;

  const WordFormsContext& context_;
};

}  // namespace syrinx::g2p
