// Kokoro's alphabet: 178 ids, 114 of them in use, one Unicode character each; id 0 is pad, begin and end.
// Specification: Kokoro, section 2.1.  Pure functions of constants: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace syrinx::kokoro {

inline constexpr int32_t kVocabularySize = 178;

// The id of a character, 0 for one that is not in the alphabet.
int32_t symbol_id(char32_t symbol);
// The character of an id, 0 for an id that is not in use.
char32_t id_symbol(int32_t id);

struct Tokens {
  std::vector<int32_t> ids;       // without the zeros at the ends
  std::vector<uint32_t> offsets;  // for each id, its byte in the phoneme string
  size_t symbols = 0;             // characters of the string, known or not: they choose the row of a voice
  size_t unknown = 0;             // those without an id, left out (a byte that is not UTF-8 counts as one)
};

Tokens tokenize(std::string_view phonemes);

}  // namespace syrinx::kokoro
