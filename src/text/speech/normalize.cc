#include "text/speech/normalize.h"

#include <algorithm>

#include "text/escape.h"
#include "text/speech/clean.h"
#include "text/speech/reader.h"

namespace syrinx::text {

namespace {

// An escape's phonemes are said, though no reader of written text knows their signs.
bool is_in_escape(const std::vector<Token>& tokens, uint32_t byte) {
  const auto after = std::upper_bound(tokens.begin(), tokens.end(), byte,
                                      [](uint32_t b, const Token& token) { return b < token.source.begin; });
  if (after == tokens.begin()) return false;
  const Token& token = *(after - 1);
  return token.kind == TokenKind::kPhonemes && byte < token.source.end;
}

}  // namespace

Result<Normalized> normalize(std::string_view text, const NormalizeOptions& options) {
  if (text.size() > options.max_bytes) {
    return fail(Code::kLimitExceeded, "the text has {} bytes, the limit is {}; send it in parts", text.size(),
                options.max_bytes);
  }
  SYRINX_TRY(const Cleaned cleaned, clean(text));
  Reader reader(text, cleaned.chars, options);
  Normalized out;
  out.tokens = reader.read_all();
  if (out.tokens.size() > options.max_tokens) {
    return fail(Code::kLimitExceeded, "the text has more than {} words and marks; send it in parts",
                options.max_tokens);
  }
  out.dropped = reader.dropped();
  for (const uint32_t byte : cleaned.dropped) out.dropped += is_in_escape(out.tokens, byte) ? 0 : 1;
  return out;
}

std::string to_text(const Normalized& normalized) {
  std::string out;
  for (size_t i = 0; i < normalized.tokens.size(); ++i) {
    out += normalized.tokens[i].text;
    if (normalized.tokens[i].space_after && i + 1 < normalized.tokens.size()) out += ' ';
  }
  return out;
}

}  // namespace syrinx::text
