// Readers of byte-level vocabularies (byte_bpe.h) as they are published: Hugging Face's `tokenizer.json`, and the
// `vocabulary.txt` that CTranslate2's converter writes.  Both spell bytes in GPT-2's alphabet of 256 printable
// characters ("Ġ" is a space).
#pragma once

#include <string>
#include <string_view>

#include "text/tokens/byte_bpe.h"

namespace syrinx::text {

inline constexpr size_t kMaxBpeFileBytes = size_t{32} << 20;

// A model of type BPE with a ByteLevel pre-tokenizer that adds no space, a ByteLevel decoder and no normaliser.  Added
// tokens are special.  The merges and the post-processor are not needed.  The texts are not needed afterwards; `name`
// stands in messages.  kDataLoss for what is malformed or contradicts itself, kUnsupported for anything else that a
// tokenizer.json may ask for, kLimitExceeded beyond kMaxBpeFileBytes and the limits of ByteBpe.
Result<ByteBpe> read_bpe_json(std::string_view json, const std::string& name);

// A token a line, in the order of ids.  `<|endoftext|>` and what follows are special.
Result<ByteBpe> read_vocabulary_txt(std::string_view text, const std::string& name);

}  // namespace syrinx::text
