// A list of merges of byte pair encoding: which pairs of tokens are joined, in which order, to which token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace syrinx::text {

class BpeMerges {
 public:
  struct Merge {
    int32_t left = 0, right = 0, whole = 0;  // ids
  };
  struct Place {
    int32_t rank = -1;  // its place in the list, the last one of a pair that is listed twice; -1: not listed
    int32_t whole = 0;
  };

  BpeMerges() = default;
  // Ids are from 0 to `tokens` - 1.
  BpeMerges(std::span<const Merge> merges, size_t tokens);

  // By binary search among the pairs of `left`: no list of a hostile file makes it slower than that.
  Place find(int32_t left, int32_t right) const;

 private:
  struct Entry {
    int32_t right = 0;
    Place place;
  };

  std::vector<uint32_t> begins_;  // of the pairs of each left id in entries_, and an end
  std::vector<Entry> entries_;    // sorted by left, then right
};

}  // namespace syrinx::text
