// The pieces of a text that runs beside the sound, as tokens, while the text still arrives: a piece may be begun before
// its end is known.  Tokens and ends of pieces follow from the text alone, however it arrives, unless rest() or
// end_behind_sentence() ends one.
//
// A token is certain once its stretch of text has ended: before a blank, before a mark that follows a letter or number,
// and behind kMostStretch characters without either.  The model's tokens do not reach across the first two.
//
// With `max` tokens as most, a piece ends
//   - behind a sentence, from max / 2 tokens on; sentences without a blank between them end at their own marks
//   (。！？);
//   - behind a clause (, ; : ! ? and their kin), from 3/4 max on;
//   - before the stretch that would not fit; one that does not fit alone is cut between characters.  Marks alone may
//     exceed `max` by kMostMarks.
//
// Control characters become blanks.  A sentence without a letter or a number of any script, or the rest of one, is left
// out and counted.  One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace syrinx::qwen_tts {

class RunningText {
 public:
  static constexpr size_t kMostStretch = 100, kMostMarks = 4;  // characters; tokens beyond the most of a piece

  // Tokens of a stretch, whose first blank is its own.
  using Encode = std::function<Result<std::vector<int32_t>>(std::string_view stretch)>;

  // `max_tokens`: at least 1.
  RunningText(Encode encode, size_t max_tokens);

  // A sentence of valid UTF-8, or how one begins that has not ended: all of it that is known, again with each call, at
  // its offset in the text.  Errors of `encode`.
  Status hear(std::string_view sentence, size_t offset, bool ended);
  // The text rests, or has ended: so does the piece, if its last sentence has.
  void rest();
  // Ends the piece behind the last whole sentence in it, of which `given` tokens at most are in use; what follows
  // begins the next piece.  False: there is none.
  bool end_behind_sentence(size_t given);

  struct Piece {
    std::vector<int32_t> tokens = {};  // that are certain
    bool ended = false;                // no more follow
  };
  const Piece& piece() const { return piece_; }
  // Tokens of the piece up to the end of the last sentence that is in it as a whole.
  size_t whole() const { return whole_; }
  // A sentence has begun of which not all has come.
  bool goes_on() const { return !sentences_.empty() && !sentences_.back().ended; }
  // The next piece begins behind this one, which has ended.  Errors of `encode`.
  Status go_on();

  size_t left_out() const { return left_out_; }  // characters

 private:
  struct Sentence {
    size_t offset = 0, heard = 0;  // bytes before it, and of it
    bool is_apart = false;         // from the one before
    std::string text = {};         // cleaned
    size_t at = 0;                 // bytes that are in pieces
    size_t spoken_to = 0;          // end of the last character that is spoken
    bool follows_blank = false;    // the next character
    bool ended = false;
  };

  static void add(Sentence& sentence, std::string_view text);
  Status advance();
  size_t stretch_end(const Sentence& sentence) const;
  Status take(Sentence& sentence, size_t end);
  size_t end_behind_marks(const Sentence& sentence, size_t end) const;
  bool ends_clause(const Sentence& sentence, size_t begin, size_t end) const;
  Result<size_t> fitting(std::string_view stretch) const;

  const Encode encode_;
  const size_t max_tokens_;
  std::deque<Sentence> sentences_;  // not yet in pieces as a whole
  Piece piece_;
  size_t whole_ = 0;
  size_t end_ = 0;         // of the last sentence, in the text
  bool is_apart_ = false;  // the next one, from those before a sentence that is left out
  size_t left_out_ = 0;
};

}  // namespace syrinx::qwen_tts
