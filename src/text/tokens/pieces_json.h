// The pieces of a vocabulary of SentencePiece's that was converted to Hugging Face's `tokenizer.json`: BPE models, as
// transformers converts those of Parakeet (convert_slow_tokenizer.py, ParakeetConverter), and unigram ones.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "text/tokens/sentencepiece_file.h"

namespace syrinx::text {

// Enough to decode, and to encode with BPE's merges: a piece scores the negated rank of the first merge that makes it.
// Added tokens are controls where they are special, else user-defined; of two pieces of one id the added one counts.
// The text is not needed afterwards.  `name` stands in messages.  kDataLoss for what is malformed or contradicts
// itself, kUnsupported for other kinds of models and for byte-level BPE, kLimitExceeded beyond kMaxTokenizerFileBytes,
// UnigramTokenizer::kMaxPieces and kMaxStoredPieceBytes.
Result<StoredPieces> read_pieces_json(std::string_view json, const std::string& name);

}  // namespace syrinx::text
