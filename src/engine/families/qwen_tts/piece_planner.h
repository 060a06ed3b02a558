// Which stretch of text is spoken at a time, while sentences still arrive: sentences are joined to pieces of a bounded
// length, so that a text of any length needs no more memory than its longest piece, and the first piece is short, so
// that its sound comes soon.  A sentence that is longer than a piece is cut behind clauses, else between words, else
// between characters.
//
// Control characters become blanks.  A sentence without a letter or a number of any script is left out and counted.
// The pieces depend on the sentences alone, unless next(true) asks for what there is.  One thread.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace syrinx::qwen_tts {

// The longest piece that may be asked for: 200 tokens are 40 to 60 s of speech.
inline constexpr size_t kMaxPieceTokens = 200, kDefaultPieceTokens = 100;

bool is_spoken(char32_t c);  // a letter or number of any script

class PiecePlanner {
 public:
  static constexpr size_t kFirstPieceTokens = 40;

  // Tokens of a text without blanks at its ends.
  using CountTokens = std::function<Result<size_t>(std::string_view text)>;

  // `max_tokens`: 1 to kMaxPieceTokens.
  PiecePlanner(CountTokens count, size_t max_tokens);

  // A sentence of valid UTF-8 that begins `offset` bytes into the text.  Errors of the count.
  Status add(std::string_view sentence, size_t offset);
  // The next piece.  Nothing while more could be joined to it, unless `now` asks for what there is.
  std::optional<std::string> next(bool now);

  size_t left_out() const { return left_out_; }  // characters of sentences that cannot be spoken

 private:
  struct Part {
    std::string text;
    size_t tokens = 0;
    bool follows_blank = false;  // something stood between it and the part before
  };

  size_t room() const { return is_first_ ? std::min(kFirstPieceTokens, max_tokens_) : max_tokens_; }
  Status take(std::string_view text, bool follows_blank);
  Status take_in_parts(std::string_view text, bool follows_blank);
  Result<size_t> fitting_prefix(std::string_view text) const;

  const CountTokens count_;
  const size_t max_tokens_;
  std::deque<Part> parts_;  // each fits into a piece
  bool is_first_ = true;
  size_t end_ = 0;  // of the last sentence, in the text
  size_t left_out_ = 0;
};

}  // namespace syrinx::qwen_tts
