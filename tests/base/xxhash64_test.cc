#include "base/xxhash64.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

namespace syrinx {
namespace {

uint64_t hash_of(std::string_view text) { return xxhash64(std::as_bytes(std::span(text.data(), text.size()))); }

// Published values: of nothing, of a few bytes, and of one that has a stripe, a word of four and single bytes.
TEST(XxHash64, GivesPublishedValues) {
  EXPECT_EQ(hash_of(""), 0xEF46DB3751D8E999u);
  EXPECT_EQ(hash_of("a"), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(hash_of("abc"), 0x44BC2CF5AD770999u);
  EXPECT_EQ(hash_of("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1u);
}

TEST(XxHash64, EveryBitCounts) {
  for (size_t size = 1; size < 100; ++size) {
    std::string text(size, 'x');
    std::set<uint64_t> seen = {hash_of(text)};
    for (char& c : text) {
      for (int bit = 0; bit < 8; ++bit) {
        c = static_cast<char>(c ^ (1 << bit));
        EXPECT_TRUE(seen.insert(hash_of(text)).second) << size;
        c = static_cast<char>(c ^ (1 << bit));
      }
    }
  }
}

}  // namespace
}  // namespace syrinx
