#include "models/g2p/small_forms.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/g2p/acronyms.h"
#include "models/g2p/british.h"
#include "models/g2p/word_rules.h"
#include "text/speech/context.h"
#include "text/unicode.h"

namespace syrinx::g2p {
namespace {

using text::Token;
using text::TokenKind;

struct Clitic {
  std::string_view written;
  PhonemesView phonemes;
};
constexpr Clitic kClitics[] = {
    {"'ve", U"əv"}, {"'ll", U"ᵊl"}, {"'re", U"əɹ"}, {"'d", U"d"}, {"'m", U"əm"}, {"n't", U"ᵊnt"},
};
// Written short without a point; `one` behind an article or the like.
struct ShortWord {
  std::string_view written, one, several;
};
constexpr ShortWord kShortWords[] = {
    {"cm", "centimeter", "centimeters"},
    {"cms", "centimeters", "centimeters"},
    {"ft", "foot", "feet"},
    {"hrs", "hours", "hours"},
    {"kg", "kilogram", "kilograms"},
    {"kgs", "kilograms", "kilograms"},
    {"km", "kilometer", "kilometers"},
    {"kms", "kilometers", "kilometers"},
    {"lb", "pound", "pounds"},
    {"lbs", "pounds", "pounds"},
    {"mg", "milligram", "milligrams"},
    {"msg", "message", "message"},
    {"msgs", "messages", "messages"},
    {"mths", "months", "months"},
    {"pcs", "pieces", "pieces"},
    {"pls", "please", "please"},
    {"plz", "please", "please"},
    {"ppl", "people", "people"},
    {"tbsp", "tablespoon", "tablespoons"},
    {"thx", "thanks", "thanks"},
    {"tmrw", "tomorrow", "tomorrow"},
    {"tsp", "teaspoon", "teaspoons"},
    {"wk", "week", "weeks"},
    {"wks", "weeks", "weeks"},
    {"yd", "yard", "yards"},
    {"yds", "yards", "yards"},
    {"yr", "year", "years"},
    {"yrs", "years", "years"},
};
constexpr ShortWord kKeys[] = {{"cmd", "command", "command"}, {"ctrl", "control", "control"}};  // with a capital too
constexpr std::string_view kBeforeOne = " a an one per each every another this that half either ";
// Acronyms that are words of other languages in small letters, and those that stay acronyms with only the first large.
constexpr std::string_view kOnlyCapitals = " eu un ";
constexpr std::string_view kTitled = " cd dj pc tv ";
constexpr std::string_view kNoises = " hng hrm hmph mhmm pft skrt tch thwp ";
constexpr std::string_view kNoiseLetters = "bfghkmnprstvz";
constexpr size_t kMaxUnsayable = 5;  // letters of an acronym without a vowel
constexpr float kLengthened = 2.0f;  // the stress of a lengthened word

// Bytes of the source before its last apostrophe; nothing where it has none.
std::optional<size_t> last_apostrophe(std::string_view source) {
  for (const std::string_view mark : {"'", "’", "ʼ"}) {
    if (const size_t at = source.rfind(mark); at != std::string_view::npos) return at;
  }
  return std::nullopt;
}

bool is_vowel_end(PhonemesView phonemes) { return !phonemes.empty() && is_vowel(phonemes.back()); }

// "I'd've": a word and "have".
bool split_have(Token& token, const WordFormsContext& context, std::vector<Token>& out) {
  const std::string lower = text::ascii_lower(token.text);
  const size_t size = lower.size();
  if (!lower.ends_with("'ve") || lower.find('\'') + 3 >= size || context.lexicon.gold(lower)) return false;
  const std::string_view source = context.source.substr(token.source.begin, token.source.size());
  const size_t cut = last_apostrophe(source).value_or(source.size());
  Token have = token;
  have.kind = TokenKind::kPhonemes;
  have.text = "have";
  have.phonemes = "əv";
  have.rule = "contraction";
  token.text.resize(size - 3);
  token.space_after = true;
  if (cut < source.size()) {
    have.source.begin += cut;
    token.source.end = have.source.begin;
  }
  out.push_back(std::move(have));
  return true;
}

// "that'll": a known word and the sounds of the ending.
void say_clitic(Token& token, const WordFormsContext& context) {
  const std::string lower = text::ascii_lower(token.text);
  if (lower.find('\'') == std::string::npos || context.lexicon.contains(lower)) return;
  const WordRules rules(context.lexicon, context.british);
  for (const Clitic& clitic : kClitics) {
    if (!lower.ends_with(clitic.written) || lower.size() < clitic.written.size() + 2) continue;
    const auto stem = rules.say(lower.substr(0, lower.size() - clitic.written.size()), Tag::kNoun, {});
    if (!stem || stem->rule == SoundRule::kSpelled || stem->phonemes.empty()) return;
    Phonemes said = stem->phonemes;
    if (clitic.written == "'d") {
      said += said.back() == U't' || said.back() == U'd' ? U"ɪd" : is_vowel_end(said) ? U"d" : U"əd";
    } else if (clitic.written == "'ll" && is_vowel_end(said)) {
      said += U"l";
    } else {
      said += clitic.phonemes;
    }
    token.kind = TokenKind::kPhonemes;
    token.phonemes = to_utf8(said);
    token.rule = "contraction";
    return;
  }
}

bool is_letter_with_s(std::string_view word) {
  return word.size() == 3 && word.ends_with("'s") && text::is_ascii_letter(static_cast<unsigned char>(word[0]));
}

bool has_only_small_letters(std::string_view word) {
  return word.size() > 1 && std::all_of(word.begin(), word.end(), text::is_ascii_lower);
}

// "grrr", "bzzt", "pfff": noises repeat a letter.
bool is_noise(std::string_view lower) {
  return text::is_listed(lower, kNoises) || (lower.find_first_not_of(kNoiseLetters) == std::string_view::npos &&
                                             std::adjacent_find(lower.begin(), lower.end()) != lower.end());
}

bool is_unsayable(std::string_view lower) {
  return lower.size() <= kMaxUnsayable && lower.find_first_of("aeiouy") == std::string_view::npos && !is_noise(lower);
}

const Acronym* find_small_acronym(std::string_view lower) {
  if (text::is_listed(lower, kOnlyCapitals)) return nullptr;
  const Acronym* const found = find_acronym(text::ascii_upper(lower));
  const bool is_known =
      found != nullptr && (found->reading == AcronymReading::kLetters || found->reading == AcronymReading::kSaid);
  return is_known ? found : nullptr;
}

// "'s", or the "s" behind an acronym.
std::string_view ending_of(std::string_view lower) {
  if (lower.ends_with("'s")) return "'s";
  const bool is_plural = lower.size() > 2 && lower.ends_with('s') && find_small_acronym(lower) == nullptr &&
                         find_small_acronym(lower.substr(0, lower.size() - 1)) != nullptr;
  return is_plural ? "s" : "";
}

// "the html of a cd", "two tvs", "yaml": acronyms in small letters; "Pdf", not "Ai" or "Ng".
bool read_small_acronym(std::string_view lower, bool is_small, const WordFormsContext& context, Token& token) {
  const std::string_view ending = ending_of(lower), stem = lower.substr(0, lower.size() - ending.size());
  if (!has_only_small_letters(stem)) return false;
  if (!is_small && stem.size() < 3 && !text::is_listed(stem, kTitled)) return false;
  const Acronym* const acronym = find_small_acronym(stem);
  const bool is_word =
      context.lexicon.contains(stem) || (acronym == nullptr && stem.ends_with('s') &&
                                         context.lexicon.contains(stem.substr(0, stem.size() - 1)));  // "pwns"
  if (is_word) return false;
  if (acronym == nullptr ? !is_small || !is_unsayable(stem) : !is_small && !is_unsayable(stem)) return false;
  Phonemes own = acronym != nullptr ? from_utf8(acronym->phonemes) : Phonemes();
  if (context.british) own = to_british(own);
  const bool is_said = acronym != nullptr && acronym->reading == AcronymReading::kSaid;
  if (is_said && !ending.empty()) own = with_s(own, context.british);
  token.kind = is_said ? TokenKind::kPhonemes : TokenKind::kLetters;
  token.phonemes = to_utf8(own);
  if (!is_said) token.text = text::ascii_upper(stem) + std::string(ending);
  token.rule = "acronym";
  return true;
}

// "per km", "ten km", "Ctrl", "Drake ft Rihanna"; empty: none.
std::string_view short_word(const std::string& lower, bool is_small, const std::vector<Token>& before) {
  const auto find = [&](std::span<const ShortWord> words) {
    const auto found = std::ranges::find(words, lower, &ShortWord::written);
    return found == words.end() ? nullptr : &*found;
  };
  if (const ShortWord* const key = find(kKeys)) return key->one;
  const std::string_view last = before.empty() ? std::string_view() : std::string_view(before.back().text);
  const bool is_one = text::is_listed(last, kBeforeOne);
  if (lower == "hr" && is_small && is_one) return "hour";
  const ShortWord* const found = is_small ? find(kShortWords) : nullptr;
  if (found == nullptr) return {};
  if (lower == "ft" && !is_one && text::has_capital(last) && !text::is_function_word(text::ascii_lower(last)))
    return "featuring";
  return is_one ? found->one : found->several;
}

// A word that the lexicon lacks; `before` are the tokens in front of it.
void read_unknown(const std::string& lower, const WordFormsContext& context, const KnownWords& known,
                  const std::vector<Token>& before, Token& token) {
  const bool is_small = token.text == lower;
  if (const std::string_view word = short_word(lower, is_small, before); !word.empty()) {
    token.text = word;
    token.rule = "abbreviation";
    return;
  }
  if (std::string word = known.shortened(lower); !word.empty()) {
    token.text = std::move(word);
    token.rule = "lengthened";
    token.stress = kLengthened;
    return;
  }
  const bool is_titled = std::equal(lower.begin() + 1, lower.end(), token.text.begin() + 1, token.text.end());
  if (is_titled) read_small_acronym(lower, is_small, context, token);
}

}  // namespace

bool is_small_acronym(std::string_view word, const Lexicon& lexicon) {
  return has_only_small_letters(word) && find_small_acronym(word) != nullptr && !lexicon.contains(word);
}

void read_small_form(Token token, const WordFormsContext& context, const KnownWords& known, std::vector<Token>& out) {
  if (is_letter_with_s(token.text)) {
    token.kind = TokenKind::kLetters;
    token.rule = "letter";
    out.push_back(std::move(token));
    return;
  }
  std::vector<Token> tail;
  split_have(token, context, tail);
  const std::string lower = text::ascii_lower(token.text);
  const bool is_key = std::ranges::find(kKeys, lower, &ShortWord::written) != std::end(kKeys);  // "CTRL"
  if (lower.size() > 1 && !context.lexicon.contains(lower) && (is_key || !is_in_capitals(token.text)))
    read_unknown(lower, context, known, out, token);
  if (token.kind == TokenKind::kWord) say_clitic(token, context);
  out.push_back(std::move(token));
  for (Token& part : tail) out.push_back(std::move(part));
}

}  // namespace syrinx::g2p
