#include "models/g2p/capital_runs.h"

#include "models/g2p/acronyms.h"
#include "text/unicode.h"

namespace syrinx::g2p {
namespace {

// A run that is being looked at.
struct Run {
  size_t begin = 0;
  size_t words = 0;   // of two letters and more
  size_t known = 0;   // among them those that are words and no acronyms
  bool whole = true;  // no other word stands before it in its sentence
};

bool has_small_letter(std::string_view word) {
  for (const char c : word) {
    if (text::is_ascii_lower(static_cast<unsigned char>(c))) return true;
  }
  return false;
}

void close(const Run& run, size_t end, bool whole, std::vector<bool>& flags) {
  const size_t least = run.whole && whole ? 1 : 2;
  if (run.words < 2 || run.known < least) return;
  for (size_t i = run.begin; i < end; ++i) flags[i] = true;
}

}  // namespace

bool ends_sentence(const text::Token& token) {
  return token.kind == text::TokenKind::kPunctuation && (token.text == "." || token.text == "!" || token.text == "?");
}

std::vector<bool> find_capital_runs(const std::vector<text::Token>& tokens, const KnownWords& known) {
  std::vector<bool> flags(tokens.size(), false);
  Run run;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const text::Token& token = tokens[i];
    if (ends_sentence(token)) {
      close(run, i, true, flags);
      run = {i + 1, 0, 0, true};
    } else if (token.kind != text::TokenKind::kWord || token.number || !token.rule.empty()) {
      continue;  // says nothing about the capitals
    } else if (has_small_letter(token.text)) {
      close(run, i, false, flags);
      run = {i + 1, 0, 0, false};
    } else if (is_in_capitals(token.text)) {
      ++run.words;
      if (find_acronym(token.text) == nullptr && known.has(text::ascii_lower(token.text), false)) ++run.known;
    }
  }
  close(run, tokens.size(), true, flags);
  return flags;
}

}  // namespace syrinx::g2p
