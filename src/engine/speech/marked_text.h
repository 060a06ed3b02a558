// The marks that a text to be spoken may hold, and the text between them, as it arrives:
//
//   [pause:500ms] [pause:1.5s]   silence, at most kMaxPauseS
//   [voice: NAME]                who speaks from here on; [voice:] is the first voice again
//   \[pause:1s]                  a backslash: what follows is read out
//
// Marks are in small letters and on one line; all else in square brackets is text.  A text is the same however it
// arrives.  One thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace syrinx {

class MarkedText {
 public:
  static constexpr size_t kMaxMarkBytes = 256;
  static constexpr double kMaxPauseS = 60;

  struct Mark {
    enum class Kind { kPause, kVoice };
    Kind kind = Kind::kPause;
    double pause_s = 0;
    std::string voice;  // empty: the first
    size_t line = 1;    // of the text, on which it stands
  };

  // plain: nothing is a mark.
  explicit MarkedText(bool plain = false) : plain_(plain) {}

  void feed(std::string_view bytes) { pending_ += bytes; }
  void finish() { finished_ = true; }

  // Appends what stands before the next mark, as far as it has come; in place of the backslash of what is read out
  // stands a space, so that bytes keep their places.
  void take_text(std::string& text);
  // After take_text(): whether a mark follows, and which.  kInvalidArgument, with the line, for one that makes no
  // sense; it is then not passed.
  bool at_mark() const { return at_mark_; }
  Result<Mark> take_mark();
  size_t offset() const { return offset_; }  // bytes of the whole text that have been taken

 private:
  void pass(size_t bytes, std::string* text);
  void stand_at(Result<Mark> mark, size_t bytes);
  Result<Mark> parse(std::string_view mark) const;

  const bool plain_;
  std::string pending_;  // begins at offset_
  size_t offset_ = 0;
  size_t line_ = 1;
  bool finished_ = false;
  bool at_mark_ = false;
  Mark mark_;
  std::optional<Error> error_;  // instead of it
  size_t mark_bytes_ = 0;       // of pending_
};

}  // namespace syrinx
