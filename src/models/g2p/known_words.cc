#include "models/g2p/known_words.h"

#include <vector>

#include "models/g2p/names.h"
#include "models/g2p/word_rules.h"
#include "text/unicode.h"

namespace syrinx::g2p {
namespace {

constexpr size_t kShortWord = 5;     // below, letters may be an acronym's
constexpr size_t kMostLetters = 40;  // of a lengthened word
constexpr size_t kMostRuns = 3;

bool is_vowel_letter(char c) { return std::string_view("aeiouy").find(c) != std::string_view::npos; }

struct Run {
  char letter;
  size_t length;
};

}  // namespace

bool KnownWords::has(std::string_view lower, bool in_capitals) const {
  if (lower.size() < 2) return false;
  if (lexicon_.gold(lower)) return true;
  const bool any_list = in_capitals || lower.size() >= kShortWord;
  if (any_list && lexicon_.silver(lower)) return true;
  if (lower.size() + 1 < kShortWord) return false;
  const auto said = WordRules(lexicon_, british_).say(lower, Tag::kNoun, {});
  if (lower.ends_with('d') && !lower.ends_with("ed")) return false;  // LAPD is no past of "lap"
  return said && (said->rule == SoundRule::kLexiconStem || said->rule == SoundRule::kHeteronymStem);
}

std::string KnownWords::shortened(std::string_view lower) const {
  if (lower.size() < 3 || lower.size() > kMostLetters) return {};
  std::vector<Run> runs;
  size_t lengthened = 0;
  for (const char c : lower) {
    if (!runs.empty() && runs.back().letter == c) {
      lengthened += ++runs.back().length == 3 ? 1 : 0;
    } else {
      runs.push_back({c, 1});
    }
  }
  if (lengthened == 0 || lengthened > kMostRuns) return {};
  // Each lengthened letter twice or once, the most letters first.
  for (size_t choice = 0; choice < (size_t{1} << lengthened); ++choice) {
    std::string word;
    size_t number = 0;
    for (const Run& run : runs) {
      const size_t count = run.length < 3 ? run.length : (choice >> number & 1) == 0 ? 2 : 1;
      if (run.length >= 3) ++number;
      word.append(count, run.letter);
    }
    if (word.size() > 1 && (lexicon_.gold(word) || find_name(word) != nullptr)) return word;
  }
  return {};
}

bool is_in_capitals(std::string_view word) {
  size_t letters = 0;
  for (const char c : word) {
    if (text::is_ascii_upper(static_cast<unsigned char>(c))) {
      ++letters;
    } else if (c != '\'' && c != '-') {
      return false;
    }
  }
  return letters > 1;
}

bool is_pronounceable(std::string_view lower) {
  size_t run = 0;
  bool vowel = false;
  bool before = false;
  for (size_t i = 0; i < lower.size(); ++i) {
    const bool is_vowel = is_vowel_letter(lower[i]);
    run = i > 0 && is_vowel == before ? run + 1 : 1;
    const size_t most = vowel || is_vowel || lower[0] == 's' ? 3 : 2;  // no word but one with "s" begins with more
    if (run > most) return false;
    before = is_vowel;
    vowel = vowel || is_vowel;
  }
  return vowel;
}

}  // namespace syrinx::g2p
