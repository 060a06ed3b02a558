// A text as it is read out, without its punctuation.
#pragma once

#include <string>
#include <string_view>

#include "text/speech/normalize.h"

namespace syrinx::text {

// In lower case, hyphens as spaces; spelled letters as single capitals, as in `speak --dry-run`.
inline std::string spoken(std::string_view text, bool british = false) {
  NormalizeOptions options;
  options.british = british;
  options.is_word = [](std::string_view word) { return word == "information" || word == "agreement"; };
  const auto normalized = normalize(text, options);
  if (!normalized) return normalized.error().message;
  std::string out;
  for (const Token& token : normalized->tokens) {
    if (token.kind == TokenKind::kPunctuation) continue;
    const bool spelled = token.kind == TokenKind::kLetters;
    if (!out.empty() && out.back() != ' ') out += ' ';
    for (const char c : token.text) {
      if (spelled && !out.empty() && out.back() != ' ') out += ' ';
      if (c == '-') {
        out += ' ';
      } else if (c != '.') {
        out += spelled ? ascii_upper(c) : ascii_lower(c);
      }
    }
  }
  return out;
}

struct Spoken {
  const char* written;
  const char* said;
};

inline void PrintTo(const Spoken& spoken, std::ostream* out) { *out << spoken.written; }

}  // namespace syrinx::text
