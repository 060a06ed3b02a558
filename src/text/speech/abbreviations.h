// Abbreviations written with a point: what to say for them and whether their point may also end a sentence.
#pragma once

#include <cstdint>
#include <string_view>

namespace syrinx::text {

enum class AbbreviationUse : uint8_t {
  kTitle,         // a name follows ("Dr."): never the end of a sentence
  kContinues,     // something always follows ("e.g.", "vs."): never the end
  kBeforeNumber,  // an abbreviation only where a number follows ("No. 5", "p. 12")
  kCapital,       // as kBeforeNumber, but with a capital only ("Art. 5"): in small letters it is a word
  kBetweenNames,  // an abbreviation only between two capitalised words ("Roe v. Wade"): never the end there
  kMayEnd,        // the point also ends the sentence where the next word has a capital ("etc.", "Inc.")
};

struct Abbreviation {
  std::string_view written;  // lower case, without the last point
  std::string_view spoken;   // words; empty: the letters one by one
  AbbreviationUse use;
};

// Without case and without the last point: "Dr", "e.g", "a.m".  Null when it is none.
const Abbreviation* find_abbreviation(std::string_view written);

// "U.S", "J.R.R": single letters with points between them (the last point may be missing).
bool is_initialism(std::string_view written);

}  // namespace syrinx::text
