// Reader of SentencePiece's `tokenizer.model` (its ModelProto), without any protobuf library.
// Source of the facts: sentencepiece_model.proto (field numbers and defaults), spec pocket-tts.md section 2.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/tokens/unigram_tokenizer.h"

namespace syrinx::text {

// The bytes are not needed afterwards.  `name` stands in messages.  kDataLoss for what is no such file or is damaged,
// kUnsupported for other kinds of models (BPE, words, characters), spaces after words, user-defined pieces and rules
// for decoded text, kLimitExceeded beyond the limits here and in unigram_tokenizer.h.
Result<UnigramTokenizer> read_sentencepiece(std::span<const std::byte> bytes, const std::string& name);

inline constexpr size_t kMaxStoredPieceBytes = 256;  // the trainer makes at most 64

// The pieces alone, of unigram and BPE models: enough to decode, and to encode with BPE's merges.
struct StoredPiece {
  enum Type : uint8_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

  std::string text;  // UTF-8, U+2581 stands for a space
  float score = 0;   // BPE: the rank of its merge, negated
  Type type = kNormal;
};
struct StoredPieces {
  std::vector<StoredPiece> pieces;  // an id is an index
  bool bpe = false;
};

// kDataLoss for what is no such file or is damaged, pieces that are empty or not UTF-8 among it, kUnsupported for
// models of words or characters, kLimitExceeded beyond kMaxTokenizerFileBytes, UnigramTokenizer::kMaxPieces and the
// above.
Result<StoredPieces> read_sentencepiece_pieces(std::span<const std::byte> bytes, const std::string& name);

}  // namespace syrinx::text
