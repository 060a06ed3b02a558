// Names and borrowed words with their sounds (names.def).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace syrinx::g2p {

enum class NameKind : uint8_t { kName, kWord, kPhrase };

struct Name {
  NameKind kind;
  std::string_view written;   // lower case
  std::string_view phonemes;  // UTF-8, the American lexicon's alphabet
};
struct Place {
  std::string_view written;
  std::string_view phonemes;
  std::string_view near;  // words between blanks; * for "in", "to" and the like before it
};

// Sorted by `written`.
std::span<const Name> all_names();
std::span<const Place> all_places();

const Name* find_name(std::string_view lower);
// The names that begin so, phrases among them.
std::span<const Name> names_beginning(std::string_view lower);
const Place* find_place(std::string_view lower);

// A word of the source in lower case and composed, curly apostrophes straight: "Résumé’s" gives "résumé's".  Letters
// beyond Latin stay as they are.
std::string fold_case(std::string_view source);

}  // namespace syrinx::g2p
