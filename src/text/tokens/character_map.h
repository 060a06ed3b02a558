// The "precompiled character map" of a SentencePiece model: rules that replace characters before a text is cut into
// pieces (NFKC, say, or full-width letters to plain ones).  Immutable and thread-safe.
//
// The bytes are: u32 size of the index; the index, a double-array trie of u32 units over UTF-8 keys (Darts-clone, whose
// value is an offset into the replacements); the replacements, each ended by a zero byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace syrinx::text {

class CharacterMap {
 public:
  static constexpr size_t kMaxBytes = size_t{4} << 20;
  static constexpr size_t kMaxKeyBytes = 64;           // longer keys of a hostile index are never reached
  static constexpr size_t kMaxReplacementBytes = 256;  // the longest of Unicode's has 33

  // Changes nothing.
  CharacterMap() = default;
  // Empty `bytes` change nothing.  `name` stands in messages.  kDataLoss, kLimitExceeded.
  static Result<CharacterMap> parse(std::string_view bytes, const std::string& name);

  struct Match {
    size_t size = 0;               // bytes of the text that are replaced; 0: no rule begins here
    std::string_view replacement;  // valid as long as the map
  };
  bool empty() const { return units_.empty(); }
  // The longest rule that the text begins with; the shortest one.
  Match longest(std::string_view text) const { return match(text, false); }
  Match shortest(std::string_view text) const { return match(text, true); }

 private:
  Match match(std::string_view text, bool first) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace syrinx::text
