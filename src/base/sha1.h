// SHA-1 (FIPS 180-4), incremental: git's name of a file's content, by which hubs vouch for small files.  Good against
// damage, not against malice; everything else is checked by sha256.h.  One thread; allocates nothing before hex().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace syrinx {

class Sha1 {
 public:
  void update(std::span<const std::byte> bytes);
  // 40 lower-case digits of all bytes so far; update() may go on afterwards.
  std::string hex() const;

 private:
  void compress(const std::byte* block);

  std::array<uint32_t, 5> state_ = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  std::array<std::byte, 64> pending_{};  // the first total_bytes_ % 64 are in use
  uint64_t total_bytes_ = 0;
};

// The name that git gives a file's content of so many bytes: SHA-1 of "blob SIZE", a zero byte, and the content, which
// follows by update().
Sha1 git_blob(uint64_t size_bytes);

}  // namespace syrinx
