// Homographs told apart by their sentence: a multinomial logistic regression over the neighbours of a word, trained by
// tools/train/homographs.py on WikipediaHomographData (Apache-2.0) and sentences of our own.
//
// The file: lines of text, then the weights.
//   syrinx homographs 1 BITS
//   WORD <tab> READING <tab> CLASS <tab> TAG <tab> AMERICAN <tab> BRITISH      a reading; those of a word follow each other
//   (an empty line, then 2^BITS signed bytes)
// A reading is said as the lexicon's variant TAG, or by its phonemes where the lexicon has no such variant.
//
// Immutable: one may serve any number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/speech/normalize.h"

namespace syrinx::g2p {

struct HomographReading {
  std::string name;                // "lead_nou"
  std::string tag;                 // of the lexicon's entry: "VERB", "DEFAULT"; empty: phonemes alone
  std::string american, british;   // phonemes, UTF-8; empty: those of the tag
  uint32_t own_key = 0, class_key = 0;
};

class Homographs {
 public:
  // The file that is part of this library.
  static const Homographs& builtin();
  // kDataLoss with `name` and the line.  The file must outlive what is made of it.
  static Result<Homographs> parse(std::string_view file, std::string_view name);

  // The reading of tokens[i] in its sentence; null where the word has only one.  Letter case is ignored.
  const HomographReading* choose(std::span<const text::Token> tokens, size_t i) const;
  size_t words() const { return readings_.size(); }

 private:
  std::map<std::string, std::vector<HomographReading>, std::less<>> readings_;
  std::span<const int8_t> weights_;
  uint32_t bits_ = 0;
};

// Hashes of the features of tokens[i], each once, in ascending order; the trainer computes the same.
std::vector<uint32_t> homograph_features(std::span<const text::Token> tokens, size_t i);

}  // namespace syrinx::g2p
