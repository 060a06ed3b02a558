// Known answers of FIPS 180-4 and its example files; every split of a message gives the same digest.
#include "base/sha256.h"
#include "temp_folder.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <vector>

namespace syrinx {
namespace {

std::string digest(const std::string& text) { return sha256_hex(std::as_bytes(std::span(text))); }

TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, EverySplitGivesTheSameDigest) {
  std::mt19937 random(7);
  for (const size_t size : {0u, 1u, 55u, 56u, 57u, 63u, 64u, 65u, 119u, 120u, 127u, 128u, 129u, 300u}) {
    std::string text(size, '\0');
    for (char& c : text) c = static_cast<char>(random());
    const std::string whole = digest(text);
    for (size_t split = 0; split <= size; ++split) {
      Sha256 hash;
      hash.update(text.data(), split);
      EXPECT_EQ(hash.hex(), digest(text.substr(0, split)));  // asking does not disturb what follows
      hash.update(text.data() + split, size - split);
      ASSERT_EQ(hash.hex(), whole) << "size " << size << " split " << split;
      Sha256 plain(Sha256::Path::kPlain);
      plain.update(text.data(), split);
      plain.update(text.data() + split, size - split);
      ASSERT_EQ(plain.hex(), whole) << "plain code, size " << size << " split " << split;
    }
  }
}

// An implementation that we did not write: coreutils' sha256sum, over lengths around every block edge.
TEST(Sha256, AgreesWithSha256sum) {
  std::mt19937 random(11);
  const TempFolder folder;
  const std::string path = folder.file("bytes");
  for (const size_t size : {1u, 64u, 1000u, 4096u, 100003u}) {
    std::vector<unsigned char> bytes(size);
    for (auto& b : bytes) b = static_cast<unsigned char>(random());
    std::FILE* const file = std::fopen(path.c_str(), "wb");
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(std::fwrite(bytes.data(), 1, size, file), size);
    std::fclose(file);
    std::FILE* const pipe = ::popen(("sha256sum " + path).c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    char digits[65] = {};
    ASSERT_EQ(std::fread(digits, 1, 64, pipe), 64u);
    ::pclose(pipe);
    EXPECT_EQ(sha256_hex(std::as_bytes(std::span(bytes))), digits);
  }
}

}  // namespace
}  // namespace syrinx
