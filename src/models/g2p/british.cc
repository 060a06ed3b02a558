#include "models/g2p/british.h"

namespace syrinx::g2p {
namespace {

bool is_mark(char32_t c) { return c == kPrimary || c == kSecondary; }

// Does a vowel follow position i, over stress marks: an r before it is said.
bool before_vowel(PhonemesView phonemes, size_t i) {
  while (i < phonemes.size() && is_mark(phonemes[i])) ++i;
  return i < phonemes.size() && (is_vowel(phonemes[i]) || phonemes[i] == U'ᵊ');
}

// A vowel before r: the long one, or the one that glides to ə.
PhonemesView before_r(char32_t vowel) {
  switch (vowel) {
    case U'ɑ': return U"ɑː";
    case U'ɔ': return U"ɔː";
    case U'ɜ': return U"ɜː";
    case U'ɛ': return U"ɛː";
    case U'ɪ': return U"ɪə";
    case U'ʊ': return U"ʊə";
    case U'ə': return U"ə";
    default: return {};
  }
}

}  // namespace

Phonemes to_british(PhonemesView american) {
  Phonemes out;
  for (size_t i = 0; i < american.size(); ++i) {
    const char32_t c = american[i];
    const bool r_follows = i + 1 < american.size() && american[i + 1] == U'ɹ';
    if (const PhonemesView vowel = before_r(c); r_follows && !vowel.empty()) {
      out += vowel;
      if (before_vowel(american, i + 2)) out += U'ɹ';
      ++i;
      continue;
    }
    const bool stressed = i > 0 && is_mark(american[i - 1]);
    switch (c) {
      case U'O': out += U'Q'; break;
      case U'ɾ': out += U't'; break;
      case U'ᵻ': out += U'ɪ'; break;
      case U'ɑ': out += U"ɑː"; break;
      case U'ɔ': out += U"ɔː"; break;
      case U'i': out += stressed ? U"iː" : U"i"; break;
      case U'u': out += stressed ? U"uː" : U"u"; break;
      case U'ɹ':
        if (before_vowel(american, i + 1)) {
          out += U'ɹ';
        } else if (i > 0 && is_vowel(american[i - 1])) {
          out += U'ə';
        }
        break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace syrinx::g2p
