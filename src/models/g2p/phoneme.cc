#include "models/g2p/phoneme.h"

#include <algorithm>

#include "text/unicode.h"

namespace syrinx::g2p {
namespace {

constexpr PhonemesView kVowels = U"AIOQWYaiuæɑɒɔəɛɜɪʊʌᵻ";
constexpr PhonemesView kConsonants = U"bdfhjklmnpstvwzðŋɡɹɾʃʒʤʧθ";
constexpr PhonemesView kHeavy = U"AIOQWYʤʧ";
constexpr PhonemesView kBeforeFlap = U"AIOWYiuæɑəɛɪɹʊʌ";  // an American t between these and a vowel is a flap

bool is_stress(char32_t c) { return c == kPrimary || c == kSecondary; }

Phonemes without_stress(PhonemesView phonemes) {
  Phonemes out;
  std::copy_if(phonemes.begin(), phonemes.end(), std::back_inserter(out), [](char32_t c) { return !is_stress(c); });
  return out;
}

// Puts `mark` before the first vowel; unchanged when there is none.
Phonemes with_mark(PhonemesView phonemes, char32_t mark) {
  Phonemes out(phonemes);
  const auto vowel = std::find_if(out.begin(), out.end(), is_vowel);
  if (vowel != out.end()) out.insert(vowel, mark);
  return out;
}

}  // namespace

bool is_vowel(char32_t c) { return kVowels.find(c) != PhonemesView::npos; }
bool is_consonant(char32_t c) { return kConsonants.find(c) != PhonemesView::npos; }
bool contains(PhonemesView phonemes, char32_t c) { return phonemes.find(c) != PhonemesView::npos; }

Phonemes with_stress(PhonemesView phonemes, float stress) {
  const bool primary = contains(phonemes, kPrimary);
  const bool secondary = contains(phonemes, kSecondary);
  const bool unmarked = !primary && !secondary;
  if (stress < -1) return without_stress(phonemes);
  if (stress == -1 || (stress <= 0 && primary)) {
    Phonemes out;
    for (const char32_t c : phonemes) {
      if (c != kSecondary) out += c == kPrimary ? kSecondary : c;
    }
    return out;
  }
  if (stress >= 0 && stress <= 1 && unmarked) return with_mark(phonemes, kSecondary);
  if (stress >= 1 && !primary && secondary) {
    Phonemes out(phonemes);
    std::replace(out.begin(), out.end(), kSecondary, kPrimary);
    return out;
  }
  if (stress > 1 && unmarked) return with_mark(phonemes, kPrimary);
  return Phonemes(phonemes);
}

int weight(PhonemesView phonemes) {
  int sum = 0;
  for (const char32_t c : phonemes) sum += kHeavy.find(c) != PhonemesView::npos ? 2 : 1;
  return sum;
}

Phonemes from_utf8(std::string_view bytes) {
  Phonemes out;
  for (size_t i = 0; i < bytes.size();) out += text::decode(bytes, i);
  return out;
}

std::string to_utf8(PhonemesView phonemes) {
  std::string out;
  for (const char32_t c : phonemes) text::append_utf8(out, c);
  return out;
}

void append_for_model(std::string& out, PhonemesView phonemes) {
  for (const char32_t c : phonemes) text::append_utf8(out, c == U'ɾ' ? U'T' : c == U'ʔ' ? U't' : c);
}

Phonemes with_s(PhonemesView stem, bool british) {
  if (stem.empty()) return {};
  Phonemes out(stem);
  const char32_t last = stem.back();
  if (PhonemesView(U"ptkfθ").find(last) != PhonemesView::npos) return out + U"s";
  if (PhonemesView(U"szʃʒʧʤ").find(last) != PhonemesView::npos) return out + (british ? U"ɪz" : U"ᵻz");
  return out + U"z";
}

Phonemes with_ed(PhonemesView stem, bool british) {
  if (stem.empty()) return {};
  Phonemes out(stem);
  const char32_t last = stem.back();
  if (PhonemesView(U"pkfθʃsʧ").find(last) != PhonemesView::npos) return out + U"t";
  if (last == U'd') return out + (british ? U"ɪd" : U"ᵻd");
  if (last != U't') return out + U"d";
  if (british || stem.size() < 2) return out + U"ɪd";
  if (kBeforeFlap.find(stem[stem.size() - 2]) != PhonemesView::npos) out.back() = U'ɾ';
  return out + U"ᵻd";
}

Phonemes with_ing(PhonemesView stem, bool british) {
  if (stem.empty()) return {};
  Phonemes out(stem);
  // A linking r would be needed here and cannot be told from the sounds alone.
  if (british && (stem.back() == U'ə' || stem.back() == U'ː')) return {};
  if (!british && stem.size() > 1 && stem.back() == U't' &&
      kBeforeFlap.find(stem[stem.size() - 2]) != PhonemesView::npos) {
    out.back() = U'ɾ';
  }
  return out + U"ɪŋ";
}

}  // namespace syrinx::g2p
