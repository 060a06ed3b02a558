// The words around a place of the input, and what they tell about the number that stands there.  All looks are bounded.
#pragma once

#include <string>
#include <string_view>

#include "text/speech/scan.h"

namespace syrinx::text {

struct Near {
  std::string word;  // in lower case, with inner apostrophes; empty: none
  size_t begin = 0;
  size_t end = 0;
  char32_t mark = 0;        // what stood between, besides white space: one of : # = , . - or an opening mark
  bool is_capital = false;  // begins with a capital
  bool is_start = false;    // begins the text or a sentence
  bool is(std::string_view list) const;
};

// A list of words is written " one two three ".
bool is_listed(std::string_view word, std::string_view list);

bool has_capital(std::string_view word);

Near word_before(const Input& in, size_t i);  // the word that ends before i
Near word_after(const Input& in, size_t i);   // the word that begins at i or behind white space

// Articles, prepositions, pronouns, auxiliaries, conjunctions, common adverbs: no noun.
bool is_function_word(std::string_view lower);
// Is the word behind i a noun in the plural ("lamps", "people")?
bool plural_follows(const Input& in, size_t i);
// Does the amount in [begin, end) describe the noun behind it: "a $5 bill", "the 5 km run", "a 10%-off sale"?
bool describes_noun(const Input& in, size_t begin, size_t end);
// Does the text stand at the end of a sentence: only closing marks and white space follow up to a capital or the end?
bool sentence_ends(const Input& in, size_t i);
// Is the first of the words before i that is not in `skipped` in `wanted`?  At most `most` words back.
bool comes_after(const Input& in, size_t i, std::string_view wanted, std::string_view skipped, int most);

}  // namespace syrinx::text
