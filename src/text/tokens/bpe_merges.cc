#include "text/tokens/bpe_merges.h"

#include <algorithm>

namespace syrinx::text {

BpeMerges::BpeMerges(std::span<const Merge> merges, size_t tokens) : begins_(tokens + 1), entries_(merges.size()) {
  for (const Merge& merge : merges) ++begins_[static_cast<size_t>(merge.left) + 1];
  for (size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
  std::vector<uint32_t> next(begins_.begin(), begins_.end() - 1);
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const Merge& merge = merges[rank];
    entries_[next[static_cast<size_t>(merge.left)]++] = {merge.right, {static_cast<int32_t>(rank), merge.whole}};
  }
  for (size_t left = 0; left < tokens; ++left)
    std::stable_sort(entries_.begin() + begins_[left], entries_.begin() + begins_[left + 1],
                     [](const Entry& a, const Entry& b) { return a.right < b.right; });
}

BpeMerges::Place BpeMerges::find(int32_t left, int32_t right) const {
  const Entry* low = entries_.data() + begins_[static_cast<size_t>(left)];
  size_t count = begins_[static_cast<size_t>(left) + 1] - begins_[static_cast<size_t>(left)];
  if (count == 0) return {};
  // The last entry that is not beyond `right`, without branches that depend on the data.
  for (; count > 1; count -= count / 2) low += low[count / 2].right <= right ? count / 2 : 0;
  return low->right == right ? low->place : Place{};
}

}  // namespace syrinx::text
