// From labels to text with times: tokens, words and how sure the model was of them (spec transducer-asr.md,
// section 4.5; the maker's parts/utils/timestamp_utils.py and parts/submodules/rnnt_decoding.py).  Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/transducer/greedy.h"
#include "models/transducer/vocabulary.h"

namespace syrinx::transducer {

// A label of the transcript; frames of the stream, the end behind the last one.
struct TokenTime {
  int32_t label = 0;
  int64_t begin = 0, end = 0;
  float confidence = 0;
};

struct WordTime {
  std::string text;  // without blanks around it, punctuation behind it
  int64_t begin = 0, end = 0;
  float confidence = 0;         // of its least certain label
  size_t first = 0, count = 0;  // which of the tokens it is made of
};

// Whether a label spells one mark that belongs to what stands before it, as a full stop, and nothing else.  Opening
// marks do not, nor do quotes and apostrophes, which may stand on either side.
bool is_closing_mark(const Vocabulary& vocabulary, int32_t label);

// Labels with their times, specials left out.  Under TDT a closing mark has the time at which the label before it ends,
// because such models give it late, after the pause.  (The maker moves opening marks as well, and leaves out the blank
// before them.)
std::vector<TokenTime> token_times(const Vocabulary& vocabulary, HeadKind kind, std::span<const Emission> emissions);

// A word begins at a label that begins one and is no closing mark; a closing mark behind a blank goes to the word
// before.
std::vector<WordTime> word_times(const Vocabulary& vocabulary, std::span<const TokenTime> tokens);

// The text that each token adds to a word, without blanks around it; the last byte of a character spelled byte by byte
// adds the character.
std::vector<std::string> token_texts(const Vocabulary& vocabulary, std::span<const TokenTime> tokens);

// The words with a blank between each two.
std::string join_words(std::span<const WordTime> words);

}  // namespace syrinx::transducer
