#include "base/rng.h"

#include <cmath>
#include <numbers>

namespace syrinx {
namespace {

constexpr uint32_t low(uint64_t value) { return static_cast<uint32_t>(value); }
constexpr uint32_t high(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

}  // namespace

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;  // golden ratio and sqrt(3) - 1, as the paper has them
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {high(product1) ^ counter[1] ^ key[0], low(product1), high(product0) ^ counter[3] ^ key[1],
               low(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

uint32_t Rng::next_u32() {
  if (used_ == words_.size()) {
    words_ = philox4x32({low(block_), high(block_), low(stream_), high(stream_)}, {low(seed_), high(seed_)});
    ++block_;
    used_ = 0;
  }
  return words_[used_++];
}

float Rng::uniform() { return static_cast<float>(next_u32() >> 8) * 0x1p-24f; }

float Rng::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  // (0, 1] keeps the logarithm finite.
  const double u = (static_cast<double>(next_u32()) + 1.0) * 0x1p-32;
  const double angle = 2.0 * std::numbers::pi * (static_cast<double>(next_u32()) + 1.0) * 0x1p-32;
  const double radius = std::sqrt(-2.0 * std::log(u));
  spare_ = static_cast<float>(radius * std::sin(angle));
  has_spare_ = true;
  return static_cast<float>(radius * std::cos(angle));
}

void Rng::fill_uniform(std::span<float> values) {
  for (float& value : values) value = uniform();
}

void Rng::fill_normal(std::span<float> values) {
  for (float& value : values) value = normal();
}

}  // namespace syrinx
