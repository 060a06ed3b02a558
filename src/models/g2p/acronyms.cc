#include "models/g2p/acronyms.h"

#include <algorithm>

#include "text/unicode.h"

namespace syrinx::g2p {
namespace {

using enum AcronymReading;
constexpr Acronym kAcronyms[] = {
#define ACRONYM(written, reading, phonemes, letters_behind, letters_before, word_behind, word_before, sources) \
  {written, reading, phonemes, letters_behind, letters_before, word_behind, word_before},
#include "models/g2p/acronyms.def"
#undef ACRONYM
};

constexpr size_t kLongest = 8;

bool has(std::string_view list, std::string_view word) {
  if (list.empty()) return false;
  return list.find(" " + std::string(word) + " ") != std::string_view::npos;
}

bool stands_behind(std::string_view list, const Neighbours& neighbours) {
  if (neighbours.behind_place && has(list, ",")) return true;
  if (neighbours.behind_number && has(list, "#")) return true;
  return has(list, neighbours.behind.empty() ? "^" : std::string_view(neighbours.behind));
}

bool stands_before(std::string_view list, const Neighbours& neighbours) {
  if (neighbours.before_number && has(list, "#")) return true;
  if (neighbours.behind.empty() && has(list, "^" + neighbours.before)) return true;
  return has(list, neighbours.before.empty() ? "$" : std::string_view(neighbours.before));
}

const Acronym* find_exact(std::string_view written) {
  const auto* found = std::lower_bound(std::begin(kAcronyms), std::end(kAcronyms), written,
                                       [](const Acronym& a, std::string_view w) { return a.written < w; });
  return found != std::end(kAcronyms) && found->written == written ? found : nullptr;
}

}  // namespace

std::span<const Acronym> all_acronyms() { return kAcronyms; }

const Acronym* find_acronym(std::string_view written) {
  if (written.size() < 2 || written.size() > kLongest) return nullptr;
  return find_exact(written);
}

bool is_spelled(const Acronym& acronym, const Neighbours& neighbours, bool* by_neighbours) {
  *by_neighbours = true;
  if (neighbours.beside_shout) return false;
  if (stands_behind(acronym.letters_behind, neighbours) || stands_before(acronym.letters_before, neighbours))
    return true;
  if (stands_behind(acronym.word_behind, neighbours) || stands_before(acronym.word_before, neighbours)) return false;
  *by_neighbours = false;
  return acronym.reading == kInProse && !neighbours.in_capitals;
}

}  // namespace syrinx::g2p
