// Reader of Hugging Face's `tokenizer.json`, for unigram vocabularies that were converted from SentencePiece: the form
// that the published Pocket TTS configurations name (spec pocket-tts.md, section 2.1).
#pragma once

#include <string>
#include <string_view>

#include "text/tokens/unigram_tokenizer.h"

namespace syrinx::text {

// Reads a model of type Unigram; a normaliser that puts U+2581 before the text and in place of spaces, with a
// Precompiled character map before that or none; a decoder that takes both back, and joins bytes; no splitting before
// and no additions afterwards.  All pieces may match the text, also `<s>` and `<0x41>` where they are spelt, as in the
// maker's library.  Special added tokens are silent when decoded, and their spelling stays text (the library makes ids
// of it).  The text is not needed afterwards.  `name` stands in messages.  kDataLoss: malformed or contradictory;
// kUnsupported: anything else that a tokenizer.json may ask for; kLimitExceeded: beyond kMaxTokenizerFileBytes and the
// limits in unigram_tokenizer.h.
Result<UnigramTokenizer> read_tokenizer_json(std::string_view json, const std::string& name);

}  // namespace syrinx::text
