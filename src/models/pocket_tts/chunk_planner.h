// Which stretch of text is spoken at a time, while sentences still arrive (spec pocket-tts.md, section 2.3; the rules
// of a cut are those of prompt.h).
//
// Sentences wait until there are enough of them, or until `now`; then they are cut as one text, and the last chunk
// waits again, as it was written but for the configuration's replacements, since what follows could still be packed
// into it; one that is full does not.  So a text of up to kBlockBytes that is there at once is cut as the maker cuts
// it; of a longer one, how sentences are packed may differ where a block ended, and where a part that no mark divides
// is cut, so that the time is linear in such a text too.  Two
// things are done where the maker does nothing: a chunk without a letter or digit that the vocabulary spells (emoji,
// another script) is left out and counted, and one of more than `max_chunk_tokens`, which no comma divides, is cut
// between words.  One thread.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "models/pocket_tts/model.h"
#include "models/pocket_tts/prompt.h"

namespace syrinx::pocket {

// The longest chunk that is spoken in one go: of words that no mark divides, 17 s and more, which the published models
// already speak with gaps.
inline constexpr size_t kMaxChunkTokens = 200;

class ChunkPlanner {
 public:
  static constexpr size_t kBlockBytes = 4096;

  // `max_tokens` (at least 1) as in prompt.h, max_chunk_tokens at least 4.
  ChunkPlanner(std::shared_ptr<const Model> model, size_t max_tokens, size_t max_chunk_tokens);

  // A sentence of valid UTF-8 that begins `offset` bytes into the text.
  void add(std::string_view sentence, size_t offset);
  // The next chunk.  Nothing while more could be packed into it, unless `now` asks for what there is.  kLimitExceeded
  // of the tokenizer.
  Result<std::optional<Chunk>> next(bool now);

  // For the chunks from here on; at least 4.
  void set_max_chunk_tokens(size_t max_chunk_tokens);

  size_t left_out() const { return left_out_; }  // characters, of chunks that cannot be spoken

 private:
  Status split(bool now);
  Status take(Chunk chunk);
  Status take_in_parts(std::string_view text);
  Status take_part(std::string_view text);
  bool can_be_spoken(const Chunk& chunk) const;

  std::shared_ptr<const Model> model_;
  const size_t max_tokens_;
  size_t max_chunk_tokens_;
  std::string pending_;     // sentences not cut yet
  size_t pending_end_ = 0;  // where the last of them ended in the text
  std::deque<Chunk> ready_;
  size_t left_out_ = 0;
};

}  // namespace syrinx::pocket
