// Output of the commands for people and programs: standard output for the answer, standard error for the rest.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace syrinx::cli {

// All of `text` to standard output.  kIo when the reader is gone or the disk is full; kCancelled after Ctrl-C.
Status print(std::string_view text);
// The same of a model's words: a terminal gets them without control characters but for line breaks.
Status print_words(std::string_view text);
// One line to standard error, "syrinx: ..." in front; never fails.
void note(std::string_view sentence);
// The same of memory that is out; takes none itself, where note() would throw again.
void note_no_memory();
bool is_terminal(int descriptor);

// A line on standard error that is written over as work goes on; nothing when that is no terminal, or when quiet.
class StatusLine {
 public:
  explicit StatusLine(bool quiet = false);
  ~StatusLine() { clear(); }
  void show(const std::string& text);
  void clear();

 private:
  const bool on_;
  bool shown_ = false;
};

}  // namespace syrinx::cli
