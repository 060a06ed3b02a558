// Known answers of FIPS 180-4's examples and of git; every split of a message gives the same digest.
#include "base/sha1.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace syrinx {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string digest(const std::string& text) {
  Sha1 hash;
  hash.update(bytes_of(text));
  return hash.hex();
}

TEST(Sha1, KnownAnswers) {
  EXPECT_EQ(digest(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(digest("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(digest(std::string(1000000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

// git hash-object of an empty file and of "hello\n".
TEST(Sha1, NamesContentAsGitDoes) {
  EXPECT_EQ(git_blob(0).hex(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  Sha1 hello = git_blob(6);
  hello.update(bytes_of("hello\n"));
  EXPECT_EQ(hello.hex(), "ce013625030ba8dba906f756967f9e9ca394464a");
}

TEST(Sha1, EverySplitGivesTheSameDigest) {
  std::mt19937 random(7);
  for (const size_t size : {0u, 1u, 54u, 55u, 56u, 57u, 63u, 64u, 65u, 119u, 120u, 128u, 300u}) {
    std::string text(size, '\0');
    for (char& c : text) c = static_cast<char>(random());
    for (size_t split = 0; split <= size; ++split) {
      Sha1 hash;
      hash.update(bytes_of(text.substr(0, split)));
      EXPECT_EQ(hash.hex(), digest(text.substr(0, split)));  // asking does not disturb what follows
      hash.update(bytes_of(text.substr(split)));
      ASSERT_EQ(hash.hex(), digest(text)) << "size " << size << " split " << split;
    }
  }
}

}  // namespace
}  // namespace syrinx
