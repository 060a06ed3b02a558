// Source text to a plain alphabet, each character with the bytes it came from: ASCII, the dashes, quotes, currency and
// other signs that have a reading, and Greek letters.  The first step of normalize().
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace syrinx::text {

struct Char {
  char32_t c;
  uint32_t begin;  // bytes of the source
  uint32_t end;
};

struct Cleaned {
  std::vector<Char> chars;
  std::vector<uint32_t> dropped;  // the byte where each character begins that was replaced by a space
};

// Compatibility forms are resolved (NFKC), digits of all scripts become ASCII, marks leave Latin letters, curly single
// quotes become ', double ones “ and ” (straight ones stay), hyphens -, "½" becomes "1/2".  What cannot be said becomes
// a space and is counted.  kInvalidArgument for a zero byte or malformed UTF-8, naming the byte.
Result<Cleaned> clean(std::string_view text);

}  // namespace syrinx::text
