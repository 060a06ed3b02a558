// Written English to spoken words: after normalize() no digit, unit, abbreviation, date or address is left, only
// words, groups of letters to be spelled, punctuation that the models know, and the caller's own phonemes.
//
// Escapes are kept: [word](/phonemes/) says the word by these phonemes, [word](-1) changes its
// stress.  Tokens carry the bytes of the source they come from, so that times can be given back in the source's terms.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/unicode.h"

namespace syrinx::text {

enum class TokenKind : uint8_t {
  kWord,         // ASCII letters with apostrophes, hyphens or inner points ("ill-disposed", "o'clock", "U.S.")
  kLetters,      // ASCII letters to be said one by one
  kPunctuation,  // one of ; : , . ! ? — … “ ” ( )
  kPhonemes,     // an escape: `text` is the written word, `phonemes` what to say
};

struct Token {
  TokenKind kind = TokenKind::kWord;
  std::string text;
  std::string phonemes;
  std::optional<float> stress;  // from an escape, or -2 (none at all) for the word "point" of a decimal
  bool space_after = true;
  bool number = false;    // stands for digits or a symbol of the source
  std::string_view rule;  // the reader that rewrote the source ("date"), a literal; empty: the word stands as written
  Range source;
};

struct NormalizeOptions {
  bool british = false;  // 3/4/2024 is the third of April; "and" within numbers
  size_t max_bytes = size_t{1} << 20;
  size_t max_tokens = size_t{1} << 18;  // some signs are four words each
  // Words that are left as they are written, whatever they contain (the user's own); may be empty.
  std::function<bool(std::string_view)> is_own_word;
  // Is this a word of the language, in lower case?  Decides whether a hyphen at a line's end belongs to the word; may
  // be empty.
  std::function<bool(std::string_view)> is_word;
};

struct Normalized {
  std::vector<Token> tokens;
  size_t dropped = 0;  // characters that cannot be spoken: emoji, other scripts, unknown symbols
};

// kLimitExceeded above max_bytes or max_tokens; kInvalidArgument naming the byte for malformed UTF-8 or a zero byte.
Result<Normalized> normalize(std::string_view text, const NormalizeOptions& options = {});

// The tokens as plain text, one space where there is one; for display and for other front ends.
std::string to_text(const Normalized& normalized);

}  // namespace syrinx::text
