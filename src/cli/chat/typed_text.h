// Text from a descriptor: a terminal's lines, or all of a pipe.  Ctrl-C ends each wait.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/result.h"

namespace syrinx::cli {

// All up to the end.  `name` stands in messages: "standard input".  kLimitExceeded beyond `most` bytes, kCancelled
// after Ctrl-C, kIo.
Result<std::string> read_to_end(int descriptor, size_t most, const std::string& name);

class LineReader {
 public:
  // Lines have at most `most` bytes.
  LineReader(int descriptor, size_t most) : descriptor_(descriptor), most_(most) {}

  // The next line without its break; nothing at the end.  kLimitExceeded for a line that is too long, behind which it
  // goes on; kCancelled after Ctrl-C, which drops what was typed of a line; kIo.
  Result<std::optional<std::string>> next();

 private:
  const int descriptor_;
  const size_t most_;
  std::string pending_;
};

}  // namespace syrinx::cli
