#include "engine/speech/pauses.h"

#include "text/unicode.h"

namespace syrinx {
namespace {

// Characters that may follow the mark that counts.
bool closes(char32_t c) { return c == U' ' || c == U')' || c == U'"' || c == U'”' || c == U'“'; }

double pause_ms(char32_t mark) {
  switch (mark) {
    case U'.':
    case U'!':
    case U'?':
    case U'…': return 300;
    case U';':
    case U':':
    case U'—': return 200;
    case U',': return 120;
    default: return 60;
  }
}

}  // namespace

TrimRule pause_rule(std::string_view phonemes) {
  char32_t mark = 0;
  for (size_t offset = 0; offset < phonemes.size();) {
    const char32_t c = text::decode(phonemes, offset);
    if (!closes(c)) mark = c;
  }
  TrimRule rule;
  rule.keep_before_ms = 50;
  rule.keep_after_ms = pause_ms(mark);
  return rule;
}

}  // namespace syrinx
