#include "base/sha1.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace syrinx {

void Sha1::update(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t used = total_bytes_ % 64, count = std::min(bytes.size(), 64 - used);
    std::copy_n(bytes.begin(), count, pending_.begin() + static_cast<std::ptrdiff_t>(used));
    total_bytes_ += count;
    bytes = bytes.subspan(count);
    if (used + count == 64) compress(pending_.data());
  }
}

void Sha1::compress(const std::byte* block) {
  std::array<uint32_t, 80> words{};
  for (size_t i = 0; i < 64; ++i) words[i / 4] = words[i / 4] << 8 | std::to_integer<uint32_t>(block[i]);
  for (size_t i = 16; i < 80; ++i) words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  auto [a, b, c, d, e] = state_;
  for (size_t i = 0; i < 80; ++i) {
    const uint32_t mixed = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999
                           : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1
                           : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
                                    : (b ^ c ^ d) + 0xca62c1d6;
    const uint32_t next = std::rotl(a, 5) + mixed + e + words[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  const std::array<uint32_t, 5> more = {a, b, c, d, e};
  for (size_t i = 0; i < state_.size(); ++i) state_[i] += more[i];
}

std::string Sha1::hex() const {
  Sha1 all = *this;
  std::array<std::byte, 72> end{std::byte{0x80}};  // a one, zeros, and the length in bits
  const size_t zeros = (119 - total_bytes_ % 64) % 64;
  for (size_t i = 0; i < 8; ++i) end[1 + zeros + i] = static_cast<std::byte>(total_bytes_ * 8 >> (56 - 8 * i));
  all.update(std::span(end).first(1 + zeros + 8));
  std::string text;
  for (const uint32_t word : all.state_) text += fmt::format("{:08x}", word);
  return text;
}

Sha1 git_blob(uint64_t size_bytes) {
  Sha1 hash;
  const std::string head = fmt::format("blob {}", size_bytes);
  hash.update(std::as_bytes(std::span(head.c_str(), head.size() + 1)));
  return hash;
}

}  // namespace syrinx
