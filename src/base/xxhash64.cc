#include "base/xxhash64.h"

#include <bit>
#include <cstring>

namespace syrinx {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie");

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Fu;
constexpr uint64_t kPrime3 = 0x165667B19E3779F9u;
constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63u;
constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5u;
constexpr size_t kLanes = 4;
constexpr size_t kStripe = kLanes * sizeof(uint64_t);

template <class T>
uint64_t read(const std::byte* at) {
  T word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

uint64_t round(uint64_t lane, uint64_t word) { return std::rotl(lane + word * kPrime2, 31) * kPrime1; }

}  // namespace

uint64_t xxhash64(std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  uint64_t hash = kPrime5;
  if (left >= kStripe) {
    uint64_t lanes[kLanes] = {kPrime1 + kPrime2, kPrime2, 0, 0 - kPrime1};
    for (; left >= kStripe; left -= kStripe, at += kStripe)
      for (size_t i = 0; i < kLanes; ++i) lanes[i] = round(lanes[i], read<uint64_t>(at + i * sizeof(uint64_t)));
    hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) + std::rotl(lanes[3], 18);
    for (const uint64_t lane : lanes) hash = (hash ^ round(0, lane)) * kPrime1 + kPrime4;
  }
  hash += bytes.size();
  for (; left >= 8; left -= 8, at += 8) hash = std::rotl(hash ^ round(0, read<uint64_t>(at)), 27) * kPrime1 + kPrime4;
  for (; left >= 4; left -= 4, at += 4) hash = std::rotl(hash ^ (read<uint32_t>(at) * kPrime1), 23) * kPrime2 + kPrime3;
  for (; left > 0; --left, ++at) hash = std::rotl(hash ^ (read<uint8_t>(at) * kPrime5), 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace syrinx
