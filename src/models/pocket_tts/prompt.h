// From a text to what Pocket TTS reads (spec pocket-tts.md, sections 2.2 to 2.4; the maker's
// pocket_tts/models/text_chunking.py 4.0.1): preparation, chunks of at most so many tokens, and their ids.
//
// All functions are pure and thread-safe; their time is linear in the text.  Texts are UTF-8, zero bytes and all, of at
// most kMaxTextBytes; control characters and symbols are passed on to the tokenizer, as by the maker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/pocket_tts/config.h"
#include "text/tokens/unigram_tokenizer.h"

namespace syrinx::pocket {

inline constexpr size_t kMaxTextBytes = size_t{2} << 20;  // and so many characters once the replacements are made
inline constexpr size_t kDefaultMaxTokens = 50;           // a chunk's; the model was trained on single sentences

struct PreparedText {
  std::string text;
  size_t frames_guess = 0;  // frames to speak after the end, two less: 3 up to four words, else 1
};

// Replacements of the configuration, white space, a capital at the beginning, a full stop at the end, spaces before a
// short text.  kInvalidArgument for malformed UTF-8, and where nothing is left to say; kLimitExceeded.
Result<PreparedText> prepare_text(std::string_view text, const TextConfig& config);

struct Chunk {
  std::string text;          // as cut
  std::string prepared;      // as spoken: prepared once more
  std::vector<int32_t> ids;  // of `prepared`
  size_t frames_guess = 0;   // as in PreparedText; frames_after_end() in speech_end.h wants it
};

// Cuts a text between sentences, and sentences of more than `max_tokens` after , ; and :, and joins neighbours again
// while they have not more than `max_tokens` together.  A part without such marks stays whole, so a chunk's ids may be
// more than that: then the model may skip words.
// Unlike the maker's, a chunk in which the configuration's replacements leave nothing has no ids and is not an error.
// Where the text `goes_on`, its last chunk's `text` gets no full stop that nobody wrote.
// Errors of prepare_text and UnigramTokenizer::encode.
Result<std::vector<Chunk>> split_text(std::string_view text, size_t max_tokens, const TextConfig& config,
                                      const text::UnigramTokenizer& tokenizer, bool goes_on = false);

}  // namespace syrinx::pocket
