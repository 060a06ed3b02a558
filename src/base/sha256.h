// SHA-256 (FIPS 180-4), incremental.  Used to verify downloads and to name caches of packed weights.
// A Sha256 belongs to one thread at a time; it allocates nothing before hex().  Uses the processor's SHA instructions
// where it has them (about 2 GB/s), plain code elsewhere (about 0.3 GB/s); SYRINX_CPU does not concern it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace syrinx {

class Sha256 {
 public:
  enum class Path { kFastest, kPlain };  // kPlain is for tests: the same digests without the instructions
  explicit Sha256(Path path = Path::kFastest);
  void update(std::span<const std::byte> bytes);
  void update(const void* data, size_t size_bytes);
  // 64 lower-case digits of all bytes so far; update() may go on afterwards.
  std::string hex() const;

 private:
  using BlockFunction = void (*)(uint32_t* state, const uint8_t* data, size_t blocks);

  BlockFunction compress_;
  std::array<uint32_t, 8> state_;
  std::array<uint8_t, 64> pending_{};  // the first total_bytes_ % 64 are in use
  uint64_t total_bytes_ = 0;
};

std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace syrinx
