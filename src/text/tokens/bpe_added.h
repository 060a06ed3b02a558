// Added tokens that a text may spell: found before the text is cut, the leftmost first and of those the longest, as
// Hugging Face's tokenizers do.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace syrinx::text {

class BpeAdded {
 public:
  // A search takes no more than this for each byte of a text.
  static constexpr size_t kMaxTokenBytes = 128;

  struct Match {
    size_t begin = 0, end = 0;  // in the text
    int32_t id = 0;
  };

  BpeAdded() = default;
  // Bytes and ids, in any order; empty ones are never found, of equal ones the first is.
  explicit BpeAdded(std::vector<std::pair<std::string, int32_t>> tokens);

  bool empty() const { return tokens_.empty(); }
  // The first match that begins at `offset` or later.
  std::optional<Match> find(std::string_view text, size_t offset) const;

 private:
  std::optional<Match> longest(std::string_view text, size_t begin) const;

  std::vector<std::pair<std::string, int32_t>> tokens_;  // sorted by bytes
  std::bitset<256> first_;                               // bytes with which one begins
};

}  // namespace syrinx::text
