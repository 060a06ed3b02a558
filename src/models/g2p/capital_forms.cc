#include "models/g2p/capital_forms.h"

#include <algorithm>

#include "models/g2p/british.h"
#include "models/g2p/capital_runs.h"
#include "models/g2p/letters.h"
#include "text/speech/context.h"
#include "text/unicode.h"

namespace syrinx::g2p {
namespace {

using text::is_listed;
using text::Token;
using text::TokenKind;

constexpr size_t kUnknownWord = 6;        // fewer unknown capitals are spelled,
constexpr size_t kUnknownWordInARun = 5;  // or fewer still in a text in capitals
constexpr float kShouted = 2.0f;          // the stress of a word in capitals
constexpr std::string_view kUnstressed = " a an the to in used am ";
// A letter stands behind these, and before these at the beginning of a sentence.
constexpr std::string_view kBeforeLetter =
    " an the vitamin vitamins grade plan type class section hepatitis letter option exhibit team group side part point "
    "string minor major flat sharp ";
constexpr std::string_view kBehindLetter = " is was comes stands means minus plus and or ";
constexpr std::string_view kShoutedPersons = " him her me you them we they he she ";
constexpr size_t kLeastLengthened = 4;  // capitals of a lengthened word: "AAA" is an acronym

bool is_upper(const Token& token) {
  const size_t first = token.text.starts_with('\'') ? 1 : 0;  // "'Twas"
  return token.text.size() > first && text::is_ascii_upper(static_cast<unsigned char>(token.text[first]));
}

// "Portland", not "HIM".
bool is_titled(const Token& token) {
  const auto is_lower = [](char c) { return text::is_ascii_lower(static_cast<unsigned char>(c)); };
  return is_upper(token) && std::any_of(token.text.begin(), token.text.end(), is_lower);
}

bool is_word(const Token& token) { return token.kind != TokenKind::kPunctuation; }

// Behind the end of a sentence, a colon or an opening mark.
bool begins_sentence(const std::vector<Token>& tokens, size_t i) {
  if (i == 0) return true;
  const Token& before = tokens[i - 1];
  if (is_word(before)) return false;
  return ends_sentence(before) || before.text == ":" || before.text == "“" || before.text == "(" || before.text == "…";
}

// "HIM, ME, and US": joined to a shouted pronoun.
bool is_beside_shout(const std::vector<Token>& tokens, size_t i) {
  size_t at = i;
  while (at > 0 && (tokens[at - 1].text == "," || is_listed(tokens[at - 1].text, " and or not "))) --at;
  return at > 0 && at < i && is_in_capitals(tokens[at - 1].text) && is_listed(tokens[at - 1].text, kShoutedPersons);
}

Neighbours neighbours_of(const std::vector<Token>& tokens, size_t i, bool in_capitals) {
  Neighbours found;
  found.in_capitals = in_capitals;
  if (i > 0 && is_word(tokens[i - 1])) {
    found.behind = text::ascii_lower(tokens[i - 1].text);
    found.behind_number = tokens[i - 1].number;
  } else if (!begins_sentence(tokens, i)) {
    found.behind = tokens[i - 1].text;
    found.behind_place = found.behind == "," && i > 1 && is_titled(tokens[i - 2]) && !in_capitals;
    if (found.behind == ",") found.behind = ", ";  // the list's comma is a place's
  }
  if (i + 1 < tokens.size() && is_word(tokens[i + 1])) {
    found.before = text::ascii_lower(tokens[i + 1].text);
    found.before_number = tokens[i + 1].number;
  }
  found.beside_shout = is_beside_shout(tokens, i);
  return found;
}

bool is_in_brackets(const std::vector<Token>& tokens, size_t i) {
  return i > 0 && i + 1 < tokens.size() && tokens[i - 1].text == "(" && tokens[i + 1].text == ")";
}

// "A: Me.", "A) Yes", "A?", "A, B and C": the mark behind a letter that begins its sentence.
bool is_letters_mark(const std::vector<Token>& tokens, size_t i) {
  if (i + 1 >= tokens.size()) return true;
  const std::string& mark = tokens[i + 1].text;
  if (mark == ":" || mark == ")" || mark == "”" || ends_sentence(tokens[i + 1])) return true;
  return mark == "," && i + 2 < tokens.size() && tokens[i + 2].text.size() == 1 && is_upper(tokens[i + 2]);
}

// "an A", "vitamin A", "(a)", "A is for apple": the letter and not the article.
bool is_letter_a(const std::vector<Token>& tokens, size_t i, bool in_capitals) {
  if (is_in_brackets(tokens, i)) return true;
  const bool next = i + 1 < tokens.size() && is_word(tokens[i + 1]);
  if (begins_sentence(tokens, i) && !next) return is_letters_mark(tokens, i);
  if (begins_sentence(tokens, i)) return !in_capitals && is_listed(tokens[i + 1].text, kBehindLetter);
  const Token& before = tokens[i - 1];
  if (is_word(before) && is_listed(before.text, kBeforeLetter)) return true;
  if (in_capitals) return false;
  const bool in_title = next && is_upper(tokens[i + 1]) && is_upper(before);
  return is_word(before) && !in_title;
}

}  // namespace

CutWord cut_ending(std::string_view word) {
  if (word.size() > 3 && word.ends_with("s'")) word.remove_suffix(1);
  const size_t ending = letters_ending(word);
  const std::string_view base = word.substr(0, word.size() - ending);
  if (ending == 1 && base.size() < 2) return {word, ""};
  return {base, ending == 2 ? "'s" : ending == 1 ? "s" : ""};
}

bool CapitalForms::read_acronym(const Acronym& acronym, const Neighbours& neighbours, std::string_view ending,
                                Token& token) const {
  bool letters = acronym.reading == AcronymReading::kLetters;
  bool by_neighbours = false;
  if (!letters && acronym.reading != AcronymReading::kSaid) letters = is_spelled(acronym, neighbours, &by_neighbours);
  token.rule = by_neighbours ? "acronym-neighbours" : "acronym";
  if (letters) {
    token.kind = TokenKind::kLetters;
    token.text = std::string(acronym.written) + std::string(ending);
    const Phonemes own = from_utf8(acronym.phonemes);
    token.phonemes = context_.british ? to_utf8(to_british(own)) : std::string(acronym.phonemes);
  } else if (acronym.reading == AcronymReading::kSaid) {
    Phonemes said = from_utf8(acronym.phonemes);
    if (context_.british) said = to_british(said);
    if (!ending.empty()) said = with_s(said, context_.british);
    token.kind = TokenKind::kPhonemes;
    token.phonemes = to_utf8(said);
  } else {
    return false;
  }
  return true;
}

// A word in lower case, where the lexicon has it or its letters may be one.
bool CapitalForms::read_known(bool in_capitals, Token& token) const {
  const std::string lower = text::ascii_lower(token.text);
  const bool has_own_entry = context_.lexicon.gold(token.text).has_value();
  const bool is_long = lower.size() >= kLeastLengthened && lower.find_first_not_of(lower[0]) != std::string::npos;
  bool word = known_.has(lower, in_capitals) || (is_long && !known_.shortened(lower).empty());
  if (!word && !has_own_entry) {
    const size_t least = in_capitals ? kUnknownWordInARun : kUnknownWord;
    word = lower.size() >= least && is_pronounceable(lower);
  }
  if (!word || (has_own_entry && !in_capitals)) return false;
  token.text = lower;
  token.rule = "capitals";
  if (!in_capitals && !is_listed(lower, kUnstressed)) token.stress = kShouted;
  return true;
}

// "MPs'": the spelling of WordRules knows no apostrophe behind the plural.  "CEOS" in a headline.
bool CapitalForms::read_plural(bool in_capitals, Token& token) const {
  const std::string_view written = token.text;
  std::string_view base = cut_ending(written).base;
  const bool genitive = written.ends_with("s'") && is_in_capitals(base);
  const bool shouted = in_capitals && written.size() > 3 && written.ends_with('S') &&
                       find_acronym(written.substr(0, written.size() - 1)) != nullptr;
  if (!genitive && !shouted) return false;
  if (shouted) base = written.substr(0, written.size() - 1);
  token.text = std::string(base) + "s";
  token.kind = TokenKind::kLetters;
  token.rule = "acronym";
  return true;
}

bool CapitalForms::read(const std::vector<Token>& tokens, size_t i, bool in_capitals, Token& token) const {
  if (token.text == "A" || (token.text == "a" && is_in_brackets(tokens, i))) {
    const bool letter = is_letter_a(tokens, i, in_capitals);
    if (!letter && !in_capitals) return false;
    token.rule = letter ? "letter" : "capitals";
    if (letter) token.kind = TokenKind::kLetters;
    if (!letter) token.text = "a";
    return true;
  }
  const bool all = is_in_capitals(token.text);
  // "IT'S" is no acronym with an ending.
  if (all && token.text.find('\'') != std::string::npos && known_.has(text::ascii_lower(token.text), true))
    return read_known(in_capitals, token);
  const CutWord cut = cut_ending(token.text);
  if (const Acronym* acronym = find_acronym(cut.base)) {
    const bool is_plain = acronym->reading == AcronymReading::kLetters && acronym->phonemes.empty() && !in_capitals &&
                          is_in_capitals(cut.base) && !context_.lexicon.contains(text::ascii_lower(cut.base));
    if (is_plain && !token.text.ends_with('\'')) return false;  // the rules for all words spell it
    if (read_acronym(*acronym, neighbours_of(tokens, i, in_capitals), cut.ending, token)) return true;
    if (!cut.ending.empty()) return false;
    token.text = text::ascii_lower(token.text);
    if (!in_capitals && !is_listed(token.text, kUnstressed)) token.stress = kShouted;
    return true;
  }
  if (all && read_known(in_capitals, token)) return true;
  return read_plural(in_capitals, token);
}

}  // namespace syrinx::g2p
