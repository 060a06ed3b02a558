// Shared by the readers of normalize(): a cursor-free view of the cleaned characters, and the tokens being written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/speech/clean.h"
#include "text/speech/normalize.h"

namespace syrinx::text {

// Positions are indices of cleaned characters; those outside read as 0, which is no letter, digit or sign.
class Input {
 public:
  Input(std::string_view source, const std::vector<Char>& chars) : source_(source), chars_(chars) {}

  size_t size() const { return chars_.size(); }
  char32_t at(size_t i) const { return i < chars_.size() ? chars_[i].c : 0; }
  bool digit(size_t i) const { return is_ascii_digit(at(i)); }
  bool letter(size_t i) const { return is_ascii_letter(at(i)); }
  bool upper(size_t i) const { return is_ascii_upper(at(i)); }
  bool lower(size_t i) const { return is_ascii_lower(at(i)); }
  bool alnum(size_t i) const { return digit(i) || letter(i); }
  bool space(size_t i) const { return at(i) == ' ' || at(i) == '\n' || i >= size(); }  // also beyond the end
  bool begins_word(size_t i) const { return i == 0 || !alnum(i - 1); }
  bool ends_word(size_t i) const { return !alnum(i); }  // a word that ends before i is not continued there
  size_t digits_end(size_t i) const;
  size_t letters_end(size_t i) const;
  size_t skip_spaces(size_t i) const;
  bool matches(size_t i, std::string_view lower) const;  // ASCII, without case
  std::string ascii(size_t begin, size_t end) const;     // other characters are left out
  int value(size_t begin, size_t end) const;             // of at most four digits; -1: there are more
  bool dash(size_t i) const { return at(i) == '-' || at(i) == U'–'; }
  Range source(size_t begin, size_t end) const;  // end > begin
  std::string_view source_text() const { return source_; }

 private:
  std::string_view source_;
  const std::vector<Char>& chars_;
};

// The tokens so far.  `begin` and `end` are the positions of the input that a token stands for.
class Output {
 public:
  explicit Output(const Input& in) : in_(in) {}

  void word(std::string_view text, size_t begin, size_t end);
  // Words separated by spaces that stand for digits or signs; "point" is unstressed, "," becomes a pause, and words in
  // capitals are spelled.
  void numbers(std::string_view words, size_t begin, size_t end);
  void letters(std::string_view text, size_t begin, size_t end);
  void punctuation(char32_t mark, size_t begin, size_t end);
  void escape(Token token);
  void space();  // white space was met
  // Names the rule of the tokens from here on; a reader may name a finer one than the table of readers has.
  void rule(std::string_view name) { rule_ = name; }
  void drop() { ++dropped_; }
  size_t dropped() const { return dropped_; }
  const std::vector<Token>& tokens() const { return tokens_; }
  std::vector<Token>& tokens() { return tokens_; }

 private:
  Token& add(TokenKind kind, std::string_view text, size_t begin, size_t end);

  const Input& in_;
  std::vector<Token> tokens_;
  std::string_view rule_;
  size_t dropped_ = 0;
};

}  // namespace syrinx::text
