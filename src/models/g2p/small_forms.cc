#include "models/g2p/small_forms.h"

#include <algorithm>
#include <optional>
#include <string>

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
// Written short without a point.
struct ShortWord {
  std::string_view written, word;
  bool is_key = false;  // with a capital too
};
constexpr ShortWord kShortWords[] = {
    {"cm", "centimeters"}, {"cmd", "command", true}, {"ctrl", "control", true}, {"ft", "feet"},    {"hrs", "hours"},
    {"kg", "kilograms"},   {"km", "kilometers"},     {"lb", "pounds"},          {"lbs", "pounds"}, {"msg", "message"},
    {"pls", "please"},     {"plz", "please"},        {"thx", "thanks"},         {"wk", "week"},    {"wks", "weeks"},
    {"yr", "year"},        {"yrs", "years"},
};
constexpr std::string_view kNoises = " hmph mmph nng ngh pff pffft pst psh sst tch tss zz zzz zzzz zzzzz ";
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

bool is_unsayable(std::string_view lower) {
  return lower.size() <= kMaxUnsayable && lower.find_first_of("aeiouy") == std::string_view::npos &&
         !text::is_listed(lower, kNoises);
}

const Acronym* find_small_acronym(std::string_view lower) {
  const Acronym* const found = find_acronym(text::ascii_upper(lower));
  const bool is_known =
      found != nullptr && (found->reading == AcronymReading::kLetters || found->reading == AcronymReading::kSaid);
  return is_known ? found : nullptr;
}

// "the html of a cd", "two tvs", "json": acronyms in small letters, which no lexicon has; "Pdf", not "Ai" or "Ng".
bool read_small_acronym(const std::string& lower, bool is_small, const WordFormsContext& context, Token& token) {
  std::string_view stem = lower, ending;
  if (stem.ends_with("'s")) ending = "'s";
  if (!has_only_small_letters(stem.substr(0, stem.size() - ending.size()))) return false;
  if (ending.empty() && stem.ends_with('s') && find_small_acronym(stem) == nullptr &&
      find_small_acronym(stem.substr(0, stem.size() - 1)) != nullptr)
    ending = "s";
  stem.remove_suffix(ending.size());
  const Acronym* const acronym = find_small_acronym(stem);
  if (!(is_small ? acronym != nullptr || is_unsayable(stem) : acronym != nullptr && is_unsayable(stem))) return false;
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

// A word that the lexicon lacks.
void read_unknown(const std::string& lower, const WordFormsContext& context, const KnownWords& known, Token& token) {
  const bool is_small = token.text == lower;
  const bool is_titled = std::string_view(token.text).substr(1) == std::string_view(lower).substr(1);
  for (const ShortWord& each : kShortWords) {
    if (each.written != lower || (!is_small && !each.is_key)) continue;
    token.text = each.word;
    token.rule = "abbreviation";
    return;
  }
  if (is_titled && read_small_acronym(lower, is_small, context, token)) return;
  if (std::string word = known.shortened(lower); !word.empty()) {
    token.text = std::move(word);
    token.rule = "lengthened";
    token.stress = kLengthened;
  }
}

}  // namespace

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
  if (!context.lexicon.contains(lower) && !is_in_capitals(token.text)) read_unknown(lower, context, known, token);
  if (token.kind == TokenKind::kWord) say_clitic(token, context);
  out.push_back(std::move(token));
  for (Token& part : tail) out.push_back(std::move(part));
}

}  // namespace syrinx::g2p
