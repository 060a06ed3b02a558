// Homographs told apart by their sentence: a multinomial logistic regression over the neighbours of a word, trained by
// tools/train/homographs.py, which names its data.
//
// The file: lines of text, then two tables of hashes of 28 bits, ascending, each with a byte: the gap to the hash
// before, 7 bits a byte, the low ones first, the top bit set where more follow; then the byte.
//   syrinx homographs 1 WORDS WEIGHTS
//   CLASS CLASS ...                                             parts of speech that a word or an ending may have
//   WORD <tab> READING <tab> KEYS <tab> TAG <tab> AMERICAN <tab> BRITISH     readings of a word follow each other
//   (an empty line)
//   WORDS words and endings ("~ing"), with the number of the class of each
//   WEIGHTS features (their hash xor that of a key), with a signed weight
// A reading scores the sum of its weights over the features and its keys.  It is said as the lexicon's variant TAG, or
// by its phonemes where the lexicon has no such variant.
//
// Immutable: one may serve any number of threads.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/speech/normalize.h"

namespace syrinx::g2p {

struct HomographReading {
  std::string name;                 // "lead_nou"
  std::string tag;                  // of the lexicon's entry: "VERB", "DEFAULT"; empty: phonemes alone
  std::string american, british;    // phonemes, UTF-8; empty: those of the tag
  std::vector<uint32_t> keys = {};  // hashes: the reading and the classes that it shares with other words
};

class Homographs {
 public:
  // The file that is part of this library.
  static const Homographs& builtin();
  // kDataLoss with `name` and what is wrong.
  static Result<Homographs> parse(std::string_view file, std::string_view name);

  // The reading of `part` in its sentence; null where it has only one.  `part` points into the text of tokens[i]: all
  // of it, or what stands between hyphens ("minute" of "five-minute").  Letter case is ignored.
  const HomographReading* choose(std::span<const text::Token> tokens, size_t i, std::string_view part) const;
  // One a reading, in the order of the file.
  std::vector<int32_t> scores(std::span<const text::Token> tokens, size_t i) const;
  const std::vector<HomographReading>* find(std::string_view word) const;
  // Null where the word has no such reading.
  const HomographReading* named(std::string_view word, std::string_view name) const;

 private:
  // Hashes in ascending order, and a byte for each.
  struct Table {
    std::vector<uint32_t> hashes;
    std::vector<uint8_t> bytes;
    // Takes `count` entries off the front of `body`; false where it does not hold them.
    bool take(std::string_view& body, size_t count);
    std::optional<uint8_t> find(uint32_t hash) const;
  };
  std::string word_class(std::span<const text::Token> tokens, size_t i, int distance) const;
  std::vector<uint32_t> features(std::span<const text::Token> tokens, size_t i) const;

  std::map<std::string, std::vector<HomographReading>, std::less<>> readings_;
  std::vector<std::string> class_names_;
  Table words_, weights_;
};

}  // namespace syrinx::g2p
