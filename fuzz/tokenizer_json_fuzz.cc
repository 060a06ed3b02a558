// Any bytes as a tokenizer.json; what loads must encode a text and decode it to UTF-8.  The pieces alone are read of
// other kinds of models too.
#include "base/check.h"
#include "text/tokens/pieces_json.h"
#include "text/tokens/tokenizer_json.h"
#include "text/unicode.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  if (const auto pieces = syrinx::text::read_pieces_json(json, "fuzz"); pieces)
    SYRINX_CHECK(pieces->pieces.size() <= syrinx::text::UnigramTokenizer::kMaxPieces);
  const auto tokenizer = syrinx::text::read_tokenizer_json(json, "fuzz");
  if (!tokenizer) return 0;
  const auto ids = tokenizer->encode("  He said\u2026 <s> <0x41> \U0001F600 a  b ");
  if (!ids) return 0;
  for (const int32_t id : *ids) SYRINX_CHECK(id >= 0 && static_cast<size_t>(id) < tokenizer->size());
  SYRINX_CHECK(!syrinx::text::find_invalid(tokenizer->decode(*ids)));
  return 0;
}
