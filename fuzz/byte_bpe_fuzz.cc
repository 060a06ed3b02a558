// Any bytes as a tokenizer.json and as a vocabulary.txt; what loads must encode a text and decode it again.
#include "base/check.h"
#include "text/tokens/bpe_files.h"
#include "text/unicode.h"

namespace {

void use(const syrinx::Result<syrinx::text::ByteBpe>& bpe) {
  if (!bpe) return;
  constexpr std::string_view kText = "  He said\u2026 it's <|en|> 12  \U0001F600 a\n\nb ";
  const auto ids = bpe->encode(kText);
  SYRINX_CHECK(ids.has_value());
  SYRINX_CHECK(bpe->decode(*ids) == kText);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  use(syrinx::text::read_bpe_json(input, "fuzz"));
  use(syrinx::text::read_vocabulary_txt(input, "fuzz"));
  SYRINX_CHECK(!syrinx::text::find_invalid(syrinx::text::replace_malformed(input)));
  size_t cut = 0;
  for (const std::string_view piece : syrinx::text::split_gpt2(input)) cut += piece.size();
  SYRINX_CHECK(cut == size);
  return 0;
}
