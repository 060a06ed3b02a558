#include "text/speech/scan.h"

#include <algorithm>
#include <array>

namespace syrinx::text {
namespace {

constexpr std::array<std::string_view, 7> kPauses = {";", ":", ",", ".", "!", "?", "…"};

bool is_one_of(std::string_view text, const std::array<std::string_view, 7>& list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

}  // namespace

size_t Input::digits_end(size_t i) const {
  while (digit(i)) ++i;
  return i;
}

size_t Input::letters_end(size_t i) const {
  while (letter(i)) ++i;
  return i;
}

size_t Input::skip_spaces(size_t i) const {
  while (i < size() && space(i)) ++i;
  return i;
}

bool Input::matches(size_t i, std::string_view lower) const {
  for (size_t k = 0; k < lower.size(); ++k) {
    const char32_t c = at(i + k);
    if (c >= 0x80 || ascii_lower(static_cast<char>(c)) != lower[k]) return false;
  }
  return true;
}

std::string Input::ascii(size_t begin, size_t end) const {
  std::string out;
  for (size_t i = begin; i < end && i < size(); ++i) {
    if (at(i) < 0x80) out += static_cast<char>(at(i));
  }
  return out;
}

int Input::value(size_t begin, size_t end) const {
  if (end - begin > 4) return -1;
  int value = 0;
  for (size_t i = begin; i < end; ++i) value = value * 10 + static_cast<int>(at(i) - '0');
  return value;
}

Range Input::source(size_t begin, size_t end) const {
  return {chars_[begin].begin, std::max(chars_[begin].end, chars_[end - 1].end)};
}

Token& Output::add(TokenKind kind, std::string_view text, size_t begin, size_t end) {
  if (!tokens_.empty()) {
    Token& last = tokens_.back();
    const bool mark = kind == TokenKind::kPunctuation;
    // Two things to say are never glued together, nor what follows a pause, whatever the source did.
    if (!mark && (last.kind != TokenKind::kPunctuation || is_one_of(last.text, kPauses))) last.space_after = true;
    if (mark && (is_one_of(text, kPauses) || text == ")" || text == "”")) last.space_after = false;
  }
  Token token;
  token.kind = kind;
  token.text = text;
  token.space_after = false;
  token.rule = rule_;
  token.source = in_.source(begin, end);
  tokens_.push_back(std::move(token));
  return tokens_.back();
}

void Output::word(std::string_view text, size_t begin, size_t end) { add(TokenKind::kWord, text, begin, end); }

void Output::numbers(std::string_view words, size_t begin, size_t end) {
  while (!words.empty()) {
    const size_t gap = std::min(words.find(' '), words.size());
    const std::string_view one = words.substr(0, gap);
    words.remove_prefix(std::min(gap + 1, words.size()));
    if (one.empty()) continue;
    if (one == ",") {
      punctuation(',', begin, end);
      space();
      continue;
    }
    // Capitals are letters to spell: "five US dollars".
    const bool spelled = std::all_of(one.begin(), one.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    Token& token = add(spelled ? TokenKind::kLetters : TokenKind::kWord, one, begin, end);
    token.number = true;
    if (one == "point") token.stress = -2.0f;
  }
}

void Output::letters(std::string_view text, size_t begin, size_t end) { add(TokenKind::kLetters, text, begin, end); }

void Output::punctuation(char32_t mark, size_t begin, size_t end) {
  std::string text;
  append_utf8(text, mark);
  add(TokenKind::kPunctuation, text, begin, end);
}

void Output::escape(Token token) {
  Token& added = add(token.kind, token.text, 0, 1);
  const bool space_after = added.space_after;
  added = std::move(token);
  added.space_after = space_after;
}

void Output::space() {
  if (!tokens_.empty()) tokens_.back().space_after = true;
}

}  // namespace syrinx::text
