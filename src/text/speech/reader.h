// Walks over the cleaned text and asks one reader after the other.  See readers.h.
#pragma once

#include <string_view>
#include <vector>

#include "text/speech/readers.h"

namespace syrinx::text {

class Reader {
 public:
  // All arguments must outlive the reader.
  Reader(std::string_view source, const std::vector<Char>& chars, const NormalizeOptions& options)
      : in_(source, chars), options_(options), out_(in_) {}

  std::vector<Token> read_all();  // ends early above max_tokens
  size_t dropped() const { return out_.dropped(); }

 private:
  size_t read_at(size_t i);
  size_t read_escape(size_t i);
  size_t read_link(size_t i);
  size_t read_own_word(size_t i);

  Input in_;
  const NormalizeOptions& options_;
  Output out_;
};

}  // namespace syrinx::text
