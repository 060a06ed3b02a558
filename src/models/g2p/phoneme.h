// Strings of phonemes in the alphabet of the lexicon (specification: Kokoro, sections 2.1 and 8.1), one code point
// each. Stress marks stand before the vowel of the stressed syllable.
#pragma once

#include <string>
#include <string_view>

namespace syrinx::g2p {

using Phonemes = std::u32string;
using PhonemesView = std::u32string_view;

inline constexpr char32_t kPrimary = U'ˈ';
inline constexpr char32_t kSecondary = U'ˌ';

bool is_vowel(char32_t c);
bool is_consonant(char32_t c);
bool contains(PhonemesView phonemes, char32_t c);

// Stress adjustment of section 8.2, step 5; `stress` is in steps of a half: below -1 removes all marks, -1 lowers
// them, 0 to 1 add a secondary where there is none, from 1 a secondary is raised, above 1 a primary is added.
Phonemes with_stress(PhonemesView phonemes, float stress);

// How heavy a word sounds: diphthongs and affricates count twice.
int weight(PhonemesView phonemes);

Phonemes from_utf8(std::string_view bytes);
std::string to_utf8(PhonemesView phonemes);
// Appends in the alphabet of the model: the flap becomes T and the glottal stop t.
void append_for_model(std::string& out, PhonemesView phonemes);

// The regular endings, by the last sounds of the stem; empty where there is no stem or no rule.
Phonemes with_s(PhonemesView stem, bool british);
Phonemes with_ed(PhonemesView stem, bool british);
Phonemes with_ing(PhonemesView stem, bool british);

}  // namespace syrinx::g2p
