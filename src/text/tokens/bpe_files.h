// Readers of byte-level vocabularies (byte_bpe.h) as they are published: Hugging Face's `tokenizer.json`, the
// `vocabulary.txt` that CTranslate2's converter writes, and the arrays of a GGUF file.  All spell bytes in GPT-2's
// alphabet of 256 printable characters ("Ġ" is a space).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "text/tokens/byte_bpe.h"

namespace syrinx::text {

inline constexpr size_t kMaxBpeFileBytes = size_t{32} << 20;

// A model of type BPE with a ByteLevel decoder.  Its pre-tokenizer is one of
//
// - ByteLevel that adds no space, as in Whisper's file.  Pairs are joined by ids (byte_bpe.h), the merges are not read,
//   and all added tokens are special.
// - a Sequence of Split, by an expression that bpe_split.h knows, and ByteLevel without an expression (Llama 3, Qwen2,
// Tekken);
//   of Digits, each alone, and ByteLevel (SmolLM2); or of ByteLevel alone.  Pairs are joined by merges.
//
// The normaliser is NFC, with a Sequence only, or none; the post-processor is passed over.  The texts are not needed
// afterwards; `name` stands in messages.  kDataLoss for what is malformed or contradicts itself, kUnsupported for
// anything else that a tokenizer.json may ask for, kLimitExceeded beyond kMaxBpeFileBytes and the limits of ByteBpe.
Result<ByteBpe> read_bpe_json(std::string_view json, const std::string& name);
// The same, but that pairs are joined by merges always: a language model's file may have ByteLevel alone too.
Result<ByteBpe> read_bpe_json_by_merges(std::string_view json, const std::string& name);

// A token a line, in the order of ids.  `<|endoftext|>` and what follows are special.
Result<ByteBpe> read_vocabulary_txt(std::string_view text, const std::string& name);

// The arrays `tokenizer.ggml.*` of a GGUF file whose model is "gpt2".
struct BpeArrays {
  std::span<const std::string_view> tokens;
  std::span<const int64_t> types;            // as many: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused
  std::span<const std::string_view> merges;  // "a b"
  // The file names the pre-tokenizer (`tokenizer.ggml.pre`), whose maker's tokenizer.json says these.
  BpeSplit split = BpeSplit::kGpt2;
  bool ignore_merges = false, nfc = false;  // as of BpeVocabulary
};

// The views are not needed afterwards.  Normal tokens are spelt in the alphabet, others as they are; unused ones are
// spelt by no text and show nothing.  Codes as of read_bpe_json().
Result<ByteBpe> make_bpe(const BpeArrays& arrays, const std::string& name);

}  // namespace syrinx::text
