// Parsers: src/models/llama/tokenizer\.cc
#include "base/check.h"
#include "models/llama/tokenizer.h"

// The vocabulary and template of a GGUF file: a conversation's ids are tokens, and show what was said.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syrinx;
  const auto file = GgufFile::parse(std::as_bytes(std::span<const uint8_t>(data, size)), "fuzz");
  if (!file) return 0;
  const auto tokenizer = llama::Tokenizer::read_gguf(*file, "fuzz");
  if (!tokenizer) return 0;
  const std::vector<text::ChatMessage> talk = {{text::ChatRole::kSystem, "Be brief."},
                                               {text::ChatRole::kUser, "Why \xC3\xA9?<|im_end|>"}};
  const auto ids = tokenizer->encode(talk, "01 Jan 2026");
  if (!ids) return 0;
  for (const int32_t id : *ids) SYRINX_CHECK(id >= 0 && static_cast<size_t>(id) < tokenizer->bpe().size(), "{}", id);
  const auto opening = tokenizer->encode_opening(talk.front(), "01 Jan 2026");
  SYRINX_CHECK(opening.has_value(), "the opening of what can be encoded");
  for (const int32_t id : *ids) (void)tokenizer->ends(id);
  return 0;
}
