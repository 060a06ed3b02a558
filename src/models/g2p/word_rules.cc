#include "models/g2p/word_rules.h"

#include <algorithm>

#include "text/speech/abbreviations.h"
#include "text/unicode.h"

namespace syrinx::g2p {
namespace {

constexpr PhonemesView kPauses = U";:,.!?—…";
constexpr size_t kLongName = 7;  // a longer capitalised name is also tried in lower case

bool only_letters(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(),
                                      [](char c) { return text::is_ascii_letter(static_cast<unsigned char>(c)); });
}

bool letters_and_apostrophes(std::string_view word) {
  bool letter = false;
  for (const char c : word) {
    if (c == '\'') continue;
    if (!text::is_ascii_letter(static_cast<unsigned char>(c))) return false;
    letter = true;
  }
  return letter;
}

bool ends_with(std::string_view word, std::string_view end) { return word.ends_with(end); }

std::string without(std::string_view word, size_t bytes) { return std::string(word.substr(0, word.size() - bytes)); }

// Capitals are stressed.
std::optional<float> stress_of(std::string_view word) {
  if (word == text::ascii_lower(word)) return std::nullopt;
  return word == text::ascii_upper(word) ? 2.0f : 0.5f;
}

// The rule of a word with an ending, by that of its stem.
SoundRule stem_rule(SoundRule rule) {
  switch (rule) {
    case SoundRule::kHeteronymTag:
    case SoundRule::kHeteronymEnd:
    case SoundRule::kHeteronymDefault: return SoundRule::kHeteronymStem;
    case SoundRule::kSpelled: return SoundRule::kSpelledStem;
    default: return SoundRule::kLexiconStem;
  }
}

}  // namespace

const char* sound_rule_name(SoundRule rule) {
  switch (rule) {
    case SoundRule::kLexicon: return "lexicon";
    case SoundRule::kLexiconSilver: return "lexicon-silver";
    case SoundRule::kLexiconStem: return "lexicon-stem";
    case SoundRule::kFunctionWord: return "function-word";
    case SoundRule::kHeteronymTag: return "heteronym-tag";
    case SoundRule::kHeteronymEnd: return "heteronym-end";
    case SoundRule::kHeteronymDefault: return "heteronym-default";
    case SoundRule::kHeteronymStem: return "heteronym-stem";
    case SoundRule::kHomograph: return "homograph";
    case SoundRule::kSpelled: return "spelled";
    case SoundRule::kSpelledStem: return "spelled-stem";
    case SoundRule::kCompound: return "compound";
    case SoundRule::kLetterToSound: return "letter-to-sound";
    case SoundRule::kDictionary: return "dictionary";
    case SoundRule::kPhonemes: return "phonemes";
    case SoundRule::kTable: return "table";
  }
  return "?";
}

std::string read_as(std::string_view word, SoundRule rule) {
  std::string out;
  if (rule == SoundRule::kSpelled) {
    for (const char c : word) {
      if (!text::is_ascii_letter(static_cast<unsigned char>(c))) continue;
      if (!out.empty()) out += ' ';
      out += text::ascii_upper(c);
    }
    return out;
  }
  out = text::ascii_lower(word);
  std::replace(out.begin(), out.end(), '-', ' ');
  return out;
}

void Following::see(PhonemesView phonemes, std::string_view word) {
  for (const char32_t c : phonemes) {
    if (kPauses.find(c) != PhonemesView::npos) {
      vowel.reset();
    } else if (is_vowel(c) || is_consonant(c)) {
      vowel = is_vowel(c);
    } else {
      continue;
    }
    break;
  }
  to = word == "to" || word == "To" || word == "TO";
}

// The British lexicon has "zee".
std::optional<Entry> WordRules::letter_name(char upper) const {
  if (british_ && upper == 'Z') {
    if (const auto zed = lexicon_.gold("zed")) return zed;
  }
  return lexicon_.gold(std::string_view(&upper, 1));
}

std::optional<Phonemes> WordRules::spell(std::string_view letters) const {
  Phonemes all;
  for (const char c : letters) {
    if (!text::is_ascii_letter(static_cast<unsigned char>(c))) continue;
    const auto name = letter_name(text::ascii_upper(c));
    if (!name) return std::nullopt;
    all += from_utf8(name->default_value());
  }
  if (all.empty()) return std::nullopt;
  Phonemes spelled = with_stress(all, 0);
  if (const size_t last = spelled.rfind(kSecondary); last != Phonemes::npos) spelled[last] = kPrimary;
  return spelled;
}

std::optional<Spoken> WordRules::to_or_the(std::string_view lower, const Query& query) const {
  const std::optional<bool> vowel = query.following.vowel;
  if (lower == "the") return Spoken{vowel == true ? U"ði" : U"ðə"};
  if (!vowel) {
    const auto entry = lexicon_.gold("to");
    return entry ? std::optional(Spoken{from_utf8(entry->default_value())}) : std::nullopt;
  }
  return Spoken{*vowel ? U"tʊ" : U"tə"};
}

std::optional<Spoken> WordRules::special(std::string_view word, const Query& query) const {
  if (text::is_initialism(word)) {
    auto spelled = spell(word);
    return spelled ? std::optional(Spoken{*spelled, WordKind::kSpelled, SoundRule::kSpelled}) : std::nullopt;
  }
  const std::string lower = text::ascii_lower(word);
  const bool stressed = query.stress && *query.stress > 0;
  if (lower == "a") return Spoken{query.tag == Tag::kDeterminer ? U"ɐ" : U"ˈA"};
  if (lower == "an") return Spoken{U"ɐn"};
  if (lower == "am") {
    if (word == "am" && query.following.vowel && !stressed) return Spoken{U"ɐm"};
    if (const auto entry = lexicon_.gold("am")) return Spoken{from_utf8(entry->default_value())};
  }
  if (word == "I" && query.tag == Tag::kPronoun) return Spoken{U"ˌI"};
  if (lower == "to" || lower == "the") return to_or_the(lower, query);
  if (lower == "in") {
    return Spoken{!query.following.vowel || query.tag != Tag::kPreposition ? U"ˈɪn" : U"ɪn"};
  }
  if (lower == "used") {
    const auto entry = lexicon_.gold("used");
    if (!entry) return std::nullopt;
    const auto habit = entry->find("VBD");
    return Spoken{
        from_utf8(query.following.to && habit && query.tag != Tag::kParticiple ? *habit : entry->default_value())};
  }
  return std::nullopt;
}

// Can look_up() say it?  Single letters and words in capitals always can, by spelling.
bool WordRules::known(std::string_view word) const {
  if (lexicon_.contains(word)) return true;
  if (!only_letters(word)) return false;
  if (word.size() == 1) return true;
  const std::string_view tail = word.substr(1);
  return tail == text::ascii_upper(tail);
}

std::optional<Spoken> WordRules::look_up(std::string_view word, const Query& query) const {
  std::string key(word);
  bool name_in_capitals = false;
  std::optional<Entry> entry = key == "Z" ? letter_name('Z') : lexicon_.gold(key);
  if (!entry && key == text::ascii_upper(key)) {
    key = text::ascii_lower(key);
    name_in_capitals = query.tag == Tag::kProperNoun;
    entry = lexicon_.gold(key);
  }
  const bool gold = entry.has_value();
  if (!entry && !name_in_capitals) entry = lexicon_.silver(key);
  std::optional<std::string_view> value;
  SoundRule rule = gold ? SoundRule::kLexicon : SoundRule::kLexiconSilver;
  if (entry && entry->by_tag()) {
    rule = SoundRule::kHeteronymDefault;
    if (!query.following.vowel) value = entry->find("None");
    if (value) rule = SoundRule::kHeteronymEnd;
    if (!value) value = entry->find(lexicon_name(query.tag));
    if (!value) value = entry->find(lexicon_class(query.tag));
    if (value && rule != SoundRule::kHeteronymEnd) rule = SoundRule::kHeteronymTag;
  }
  if (word.size() == 1) rule = SoundRule::kSpelled;  // the name of a letter
  if (entry && !value) value = entry->default_value();
  const bool found = value && !value->empty();
  const Phonemes phonemes = found ? from_utf8(*value) : Phonemes();
  if (!found || (name_in_capitals && !contains(phonemes, kPrimary))) {
    if (auto spelled = spell(key)) return Spoken{*spelled, WordKind::kSpelled, SoundRule::kSpelled};
    if (!found) return std::nullopt;
  }
  return Spoken{query.stress ? with_stress(phonemes, *query.stress) : phonemes, WordKind::kLexicon, rule};
}

std::optional<std::string> WordRules::stem_of_s(std::string_view word) const {
  if (word.size() < 3 || !ends_with(word, "s")) return std::nullopt;
  if (!ends_with(word, "ss") && known(without(word, 1))) return without(word, 1);
  const bool es = word.size() > 4 && ends_with(word, "es") && !ends_with(word, "ies");
  if ((ends_with(word, "'s") || es) && known(without(word, 2))) return without(word, 2);
  if (word.size() > 4 && ends_with(word, "ies") && known(without(word, 3) + "y")) return without(word, 3) + "y";
  return std::nullopt;
}

std::optional<std::string> WordRules::stem_of_ed(std::string_view word) const {
  if (word.size() < 4 || !ends_with(word, "d")) return std::nullopt;
  if (!ends_with(word, "dd") && known(without(word, 1))) return without(word, 1);
  if (word.size() > 4 && ends_with(word, "ed") && !ends_with(word, "eed") && known(without(word, 2)))
    return without(word, 2);
  return std::nullopt;
}

std::optional<std::string> WordRules::stem_of_ing(std::string_view word) const {
  if (word.size() < 5 || !ends_with(word, "ing")) return std::nullopt;
  const std::string stem = without(word, 3);
  if (word.size() > 5 && known(stem)) return stem;
  if (known(stem + "e")) return stem + "e";
  if (stem.size() < 3) return std::nullopt;
  const char last = stem.back();
  const char before = stem[stem.size() - 2];
  const bool doubled = last == before && std::string_view("bcdgklmnprstvxz").find(last) != std::string_view::npos;
  if ((doubled || ends_with(stem, "ck")) && known(without(stem, 1))) return without(stem, 1);
  return std::nullopt;
}

std::optional<Spoken> WordRules::ending(std::string_view word, const Query& query) const {
  const Query stressed{query.tag, query.stress.value_or(0.5f), query.following};
  if (const auto stem = stem_of_s(word)) {
    if (auto said = with_ending(word, *stem, look_up(*stem, query), with_s)) return said;
  }
  if (const auto stem = stem_of_ed(word)) {
    if (auto said = with_ending(word, *stem, look_up(*stem, query), with_ed)) return said;
  }
  if (const auto stem = stem_of_ing(word)) {
    if (auto said = with_ending(word, *stem, look_up(*stem, stressed), with_ing)) return said;
  }
  return std::nullopt;
}

// `word` is `stem` with the ending that `add` says.  Nothing where the stem or the result has no sound.
std::optional<Spoken> WordRules::with_ending(std::string_view word, std::string_view stem,
                                             const std::optional<Spoken>& said,
                                             Phonemes (*add)(PhonemesView, bool)) const {
  if (!said) return std::nullopt;
  Spoken out{add(said->phonemes, british_), WordKind::kSuffix, stem_rule(said->rule)};
  if (out.phonemes.empty()) return std::nullopt;
  if (said->rule == SoundRule::kSpelled) {
    const bool is_whole = word.starts_with(stem);  // not "ies" of "y"
    out.read_as = read_as(stem, said->rule) + (is_whole ? text::ascii_lower(word.substr(stem.size())) : "s");
  }
  return out;
}

// A capitalised word that the lexicon has in lower case only is taken in lower case, unless it may be a short name.
std::string WordRules::chosen_case(std::string_view word, const Query& query) const {
  const std::string lower = text::ascii_lower(word);
  if (word.size() < 2 || lower == word || !letters_and_apostrophes(word) || lexicon_.contains(word))
    return std::string(word);
  if (query.tag == Tag::kProperNoun && word.size() <= kLongName) return std::string(word);
  const bool shouted = word == text::ascii_upper(word);
  const bool titled = word.substr(1) == text::ascii_lower(word.substr(1));
  if (!shouted && !titled) return std::string(word);
  return lexicon_.contains(lower) || ending(lower, query) ? lower : std::string(word);
}

std::optional<Spoken> WordRules::regular(std::string_view word, const Query& query) const {
  if (known(word)) return look_up(word, query);
  if (ends_with(word, "s'") && known(without(word, 2) + "'s")) return look_up(without(word, 2) + "'s", query);
  if (ends_with(word, "'") && known(without(word, 1))) return look_up(without(word, 1), query);
  return ending(word, query);
}

std::optional<Spoken> WordRules::say_reading(std::string_view word, const HomographReading& reading) const {
  std::optional<std::string_view> value = british_ ? reading.british : reading.american;
  if (!reading.tag.empty()) {
    const auto entry = lexicon_.gold(text::ascii_lower(word));
    if (!entry || !entry->by_tag()) return std::nullopt;
    value = entry->find(reading.tag);
  }
  if (!value || value->empty()) return std::nullopt;
  const Phonemes phonemes = from_utf8(*value);
  const std::optional<float> stress = stress_of(word);
  return Spoken{stress ? with_stress(phonemes, *stress) : phonemes, WordKind::kLexicon, SoundRule::kHomograph};
}

std::optional<Spoken> WordRules::say(std::string_view word, Tag tag, const Following& following) const {
  const Query query{tag, stress_of(word), following};
  if (auto said = special(word, query)) {
    if (said->kind != WordKind::kSpelled) said->rule = SoundRule::kFunctionWord;
    return said;
  }
  if (auto said = regular(chosen_case(word, query), query)) return said;
  // "IT'S", "BENNET'S": shouted words with an apostrophe.
  if (word.find('\'') == std::string_view::npos || word != text::ascii_upper(word) || word.size() < 3)
    return std::nullopt;
  return regular(text::ascii_lower(word), query);
}

}  // namespace syrinx::g2p
