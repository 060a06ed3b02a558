// Reader of SentencePiece's `tokenizer.model` (its ModelProto), without any protobuf library.
// Source of the facts: sentencepiece_model.proto (field numbers and defaults), spec pocket-tts.md section 2.1.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "text/unigram_tokenizer.h"

namespace syrinx::text {

// The bytes are not needed afterwards.  `name` stands in messages.  kDataLoss for what is no such file or is damaged,
// kUnsupported for other kinds of models (BPE, words, characters), spaces after words, user-defined pieces and rules
// for decoded text, kLimitExceeded beyond the limits here and in unigram_tokenizer.h.
Result<UnigramTokenizer> read_sentencepiece(std::span<const std::byte> bytes, const std::string& name);

}  // namespace syrinx::text
