// Sentences and clauses of running text.  Abbreviations, initials, decimals, addresses, quotations and escapes
// [word](/phonemes/) do not end a sentence by the points inside them.  The marks of scripts without blanks (。！？ and
// ，、；：) end what stands before them; but not a quotation behind which letters follow at once.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/unicode.h"

namespace syrinx::text {

// Ranges of `text` without surrounding white space, in order, none empty.  A blank line always ends a sentence; a
// single line break does unless the line looks wrapped (it is long, or the next line goes on in lower case).
std::vector<Range> split_sentences(std::string_view text);

// Ranges of one sentence that end after , ; : — or a closing bracket or quotation; together they cover the sentence.
std::vector<Range> split_clauses(std::string_view sentence);

// Text that arrives piece by piece.  A sentence is given out once what follows it shows that it has ended, so the same
// text gives the same sentences however it was cut, unless next_at_pause() is used.  Not thread-safe; memory is bounded
// by kMaxPendingBytes.
class SentenceStream {
 public:
  static constexpr size_t kMaxPendingBytes = size_t{1} << 20;

  // The stream begins so many bytes into a whole text, in which offsets are counted.
  explicit SentenceStream(size_t offset = 0) : consumed_(offset) {}

  // Bytes of UTF-8, possibly ending inside a character.  kInvalidArgument (with the offset in the whole text) for
  // malformed bytes; kLimitExceeded when text without an end, or not yet taken by next(), grows beyond the bound.
  Status feed(std::string_view bytes);
  // The next sentence that is certain to be complete, or nothing.
  std::optional<std::string> next();
  // For a pause in the text, after next() gave nothing: what waits, if it ends as a sentence or a line does ("Hello. ",
  // but not "Dr. " or a first "1.").  A guess: "Yes." may yet go on in small letters or with its closing quotation, so
  // a stream that is asked this may be cut in other places than its whole text; only where it ended when it was asked.
  std::optional<std::string> next_at_pause();
  // After next() gave nothing: how the next sentence begins, as far as it is certain not to end.  Valid until the next
  // call; whatever comes, the sentence will begin so, and begun_offset() bytes into the text.
  std::string_view begun() const { return std::string_view(pending_).substr(given_, scanned_ - given_); }
  size_t begun_offset() const { return consumed_ + given_; }
  // No more text comes: next() now gives out what is left.  kInvalidArgument if the text ends inside a character.
  Status finish();
  // Bytes of the text before the sentence that was given out last.
  size_t sentence_offset() const { return sentence_offset_; }

 private:
  std::string give(size_t start, size_t end);

  std::string pending_;
  size_t consumed_;     // bytes of the text before pending_
  size_t given_ = 0;    // bytes of pending_ already given out
  size_t scanned_ = 0;  // bytes of pending_ that held no certain end
  size_t checked_ = 0;  // bytes of pending_ known to be valid UTF-8
  size_t sentence_offset_ = 0;
  bool finished_ = false;
};

}  // namespace syrinx::text
