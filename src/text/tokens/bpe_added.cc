#include "text/tokens/bpe_added.h"

#include <algorithm>

namespace syrinx::text {

BpeAdded::BpeAdded(std::vector<std::pair<std::string, int32_t>> tokens) : tokens_(std::move(tokens)) {
  const auto by_bytes = [](const auto& a, const auto& b) { return a.first < b.first; };
  const auto same_bytes = [](const auto& a, const auto& b) { return a.first == b.first; };
  std::erase_if(tokens_, [](const auto& token) { return token.first.empty(); });
  std::stable_sort(tokens_.begin(), tokens_.end(), by_bytes);
  tokens_.erase(std::unique(tokens_.begin(), tokens_.end(), same_bytes), tokens_.end());
  for (const auto& token : tokens_) first_.set(static_cast<uint8_t>(token.first.front()));
}

std::optional<BpeAdded::Match> BpeAdded::find(std::string_view text, size_t offset) const {
  if (empty()) return std::nullopt;
  for (; offset < text.size(); ++offset)
    if (first_.test(static_cast<uint8_t>(text[offset])))
      if (const auto match = longest(text, offset)) return match;
  return std::nullopt;
}

// Narrows the range of tokens that begin as the text does, byte by byte.
std::optional<BpeAdded::Match> BpeAdded::longest(std::string_view text, size_t begin) const {
  std::optional<Match> found;
  auto low = tokens_.begin(), high = tokens_.end();
  for (size_t size = 1; begin + size <= text.size() && low != high; ++size) {
    const auto byte = static_cast<uint8_t>(text[begin + size - 1]);
    const auto at = [&](const auto& token) { return static_cast<uint8_t>(token.first[size - 1]); };
    low = std::partition_point(low, high, [&](const auto& token) { return at(token) < byte; });
    high = std::partition_point(low, high, [&](const auto& token) { return at(token) == byte; });
    if (low == high || low->first.size() > size) continue;
    found = Match{begin, begin + size, low->second};
    ++low;
  }
  return found;
}

}  // namespace syrinx::text
