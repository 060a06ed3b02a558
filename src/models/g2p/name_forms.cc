#include "models/g2p/name_forms.h"

#include <algorithm>

#include "models/g2p/british.h"
#include "models/g2p/known_words.h"
#include "text/unicode.h"

namespace syrinx::g2p {
namespace {

using text::Token;
using text::TokenKind;

constexpr size_t kLongestPhrase = 6;  // words
constexpr size_t kLongestWord = 40;   // bytes of a word with accents that is respelled
constexpr std::string_view kBeforePlace = " in to from near at of via around outside leave left visit visited leaving ";

bool is_upper(std::string_view word, size_t i) {
  return i < word.size() && text::is_ascii_upper(static_cast<unsigned char>(word[i]));
}

bool is_ascii(std::string_view word) {
  return std::all_of(word.begin(), word.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_listed(std::string_view word, std::string_view list) {
  return !word.empty() && list.find(" " + text::ascii_lower(word) + " ") != std::string_view::npos;
}

// The word before the ending, and whether an "s" is said.
struct Stem {
  std::string_view word;
  bool s = false;
};

// "muñoz's", "james'", "o'malleys": the stems that a list may have, the longest first.
std::vector<Stem> stems(std::string_view word) {
  std::vector<Stem> found = {{word, false}};
  if (word.ends_with("'s")) found.push_back({word.substr(0, word.size() - 2), true});
  if (word.ends_with('\'')) found.push_back({word.substr(0, word.size() - 1), false});
  if (word.ends_with("s'")) found.push_back({word.substr(0, word.size() - 2), true});
  if (word.size() > 4 && word.ends_with('s')) found.push_back({word.substr(0, word.size() - 1), true});
  return found;
}

// Is the place meant: a neighbour of its line stands behind it, or "in" and the like before it.
bool is_place(const Place& place, const std::vector<Token>& tokens, size_t i) {
  size_t next = i + 1;
  if (next < tokens.size() && tokens[next].kind == TokenKind::kPunctuation && tokens[next].text == ",") ++next;
  const bool word_follows = next < tokens.size() && tokens[next].kind == TokenKind::kWord;
  if (word_follows && is_listed(tokens[next].text, place.near)) return true;
  const bool title = next == i + 1 && word_follows && is_upper(tokens[next].text, 0);
  return !title && i > 0 && place.near.starts_with(" * ") && is_listed(tokens[i - 1].text, kBeforePlace);
}

// Letters that English writes in another way.
std::string_view respelled(char32_t c, bool is_last) {
  switch (c) {
    case U'é': return is_last ? "ay" : "e";
    case U'ñ': return "ny";
    case U'č':
    case U'ć': return "ch";
    case U'š':
    case U'ş':
    case U'ś': return "sh";
    case U'ž':
    case U'ż': return "zh";
    case U'ç': return "s";
    case U'ø': return "o";
    default: return {};
  }
}

}  // namespace

std::string_view NameForms::written(const Token& token) const {
  return context_.source.substr(token.source.begin, token.source.size());
}

// The word in lower case, with the accents that the source has.
std::string NameForms::folded(const Token& token) const {
  return is_ascii(written(token)) ? text::ascii_lower(token.text) : fold_case(written(token));
}

Token NameForms::said(Token token, const Phonemes& phonemes, std::string_view rule) const {
  token.kind = TokenKind::kPhonemes;
  token.phonemes = to_utf8(phonemes);
  token.rule = rule;
  return token;
}

size_t NameForms::read_phrase(const std::vector<Token>& tokens, size_t i, std::vector<Token>& out) const {
  const std::span<const Name> beginning = names_beginning(folded(tokens[i]) + " ");
  if (beginning.empty()) return 0;
  std::string phrase = folded(tokens[i]);
  const Name* found = nullptr;
  size_t count = 0;
  bool possessive = false;
  for (size_t k = 1; k < kLongestPhrase && i + k < tokens.size() && tokens[i + k].kind == TokenKind::kWord; ++k) {
    phrase += " " + folded(tokens[i + k]);
    const bool s = phrase.ends_with("'s");
    const Name* longer = find_name(phrase);
    if (longer == nullptr && s) longer = find_name(std::string_view(phrase).substr(0, phrase.size() - 2));
    if (longer != nullptr) {
      possessive = s && longer->written.size() < phrase.size();
      found = longer;
      count = k + 1;
    }
  }
  std::string_view rest = found == nullptr ? std::string_view() : found->phonemes;
  for (size_t k = 0; k < count; ++k) {
    const size_t end = std::min(rest.find(' '), rest.size());
    Phonemes own = from_utf8(rest.substr(0, end));
    if (context_.british) own = to_british(own);
    if (possessive && k + 1 == count) own = with_s(own, context_.british);
    out.push_back(said(tokens[i + k], std::move(own), "phrase"));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return count;
}

bool NameForms::read_word(const std::vector<Token>& tokens, size_t i, bool in_capitals, Token& token) const {
  const std::string word = folded(token);
  const bool capital = is_upper(token.text, 0);
  const bool shouted = is_in_capitals(token.text);
  const auto take = [&](std::string_view phonemes, bool s, std::string_view rule) {
    Phonemes own = from_utf8(phonemes);
    if (context_.british) own = to_british(own);
    if (s) own = with_s(own, context_.british);
    token = said(std::move(token), std::move(own), rule);
    return true;
  };
  for (const Stem& stem : stems(word)) {
    if (stem.word.size() < 2) continue;
    // Capitals of a few letters are an acronym sooner than a name.
    const bool name = capital && (!shouted || stem.word.size() > (in_capitals ? 2u : 4u));
    const bool plural = stem.s && !word.ends_with('\'') && word[stem.word.size()] == 's';
    if (plural && context_.lexicon.contains(word)) continue;
    if (name && !stem.s) {
      const Place* place = find_place(stem.word);
      if (place != nullptr && is_place(*place, tokens, i)) return take(place->phonemes, false, "name-neighbours");
    }
    const Name* found = find_name(stem.word);
    if (found == nullptr || (found->kind == NameKind::kName && !name)) continue;
    return take(found->phonemes, stem.s, is_ascii(word) ? "name" : "accent");
  }
  return false;
}

// "O'" and a name that the lexicon or the network says.
bool NameForms::read_irish(Token& token) const {
  const std::string& word = token.text;
  if (word.size() < 5 || !word.starts_with("O'") || !is_upper(word, 2)) return false;
  std::string name = word.substr(2);
  if (is_in_capitals(name)) name = name.substr(0, 1) + text::ascii_lower(name.substr(1));
  Phonemes rest = context_.say(name);
  if (rest.empty()) return false;
  token = said(std::move(token), (context_.british ? U"Q" : U"O") + rest, "name");
  return true;
}

size_t NameForms::read(const std::vector<Token>& tokens, size_t i, bool in_capitals, std::vector<Token>& out) const {
  if (const size_t count = read_phrase(tokens, i, out); count > 0) return count;
  Token token = tokens[i];
  if (!read_word(tokens, i, in_capitals, token) && !read_irish(token)) return 0;
  out.push_back(std::move(token));
  return 1;
}

Token NameForms::read_accents(Token token) const {
  const std::string_view source = written(token);
  if (is_ascii(source) || source.size() > kLongestWord || context_.lexicon.contains(text::ascii_lower(token.text)))
    return token;
  const std::string word = fold_case(source);
  std::string spelling;
  bool changed = false;
  for (size_t i = 0; i < word.size();) {
    const char32_t c = text::decode(word, i);
    const std::string_view rest = std::string_view(word).substr(i);
    const std::string_view other = respelled(c, rest.empty() || rest == "s" || rest == "'s" || rest == "e");
    changed = changed || !other.empty();
    if (c < 0x80) {
      spelling += static_cast<char>(c);
    } else {
      spelling += other.empty() ? text::ascii_lower(text::ascii_letters(c)) : std::string(other);
    }
    if (other == "ay" && rest == "e") break;  // "-ée"
  }
  if (!changed) return token;
  Phonemes phonemes = context_.say(spelling);
  return phonemes.empty() ? token : said(std::move(token), std::move(phonemes), "accent");
}

}  // namespace syrinx::g2p
