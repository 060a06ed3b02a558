// Words in capitals that are spelled, said, or one or the other by their neighbours (acronyms.def).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace syrinx::g2p {

enum class AcronymReading : uint8_t { kLetters, kInProse, kByNeighbours, kSaid };

struct Acronym {
  std::string_view written;
  AcronymReading reading;
  std::string_view phonemes;
  std::string_view letters_behind, letters_before, word_behind, word_before;  // neighbours, each between blanks
};

// Sorted by `written`.
std::span<const Acronym> all_acronyms();
// With its capitals.  Null when it is none.
const Acronym* find_acronym(std::string_view written);

// The words beside one.
struct Neighbours {
  std::string behind;          // the word before it in lower case; empty at the beginning of a sentence
  std::string before;          // the word after it in lower case; empty at the end of a phrase
  bool behind_number = false;  // numbers, in digits or in words
  bool before_number = false;
  bool behind_place = false;  // a comma and, before that, a capitalised word
  bool in_capitals = false;   // so is the text around it
  bool beside_shout = false;  // behind a pronoun in capitals, with a comma or "and" between
};

// Whether an acronym that is also a word is spelled here; `by_neighbours` tells that they decided.
bool is_spelled(const Acronym& acronym, const Neighbours& neighbours, bool* by_neighbours);

}  // namespace syrinx::g2p
