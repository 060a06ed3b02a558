// A byte is a sign, three bits of exponent and four of mantissa, some of them inverted on the wire.  Steps double with
// the exponent; mu-law's are counted from a bias that makes its first ones alike.
#include "audio/g711.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace syrinx {
namespace {

constexpr int kMuLawBias = 132;
constexpr int kMuLawLargest = 32635;  // with the bias it still has 15 bits
constexpr int kALawFirstBits = 8;     // of a magnitude in A-law's first two exponents, whose steps are alike

std::byte packed(bool sign, int exponent, int mantissa, int inverted) {
  return static_cast<std::byte>(((sign ? 0x80 : 0) | exponent << 4 | (mantissa & 0xF)) ^ inverted);
}

int bits_of(int magnitude) { return static_cast<int>(std::bit_width(static_cast<unsigned>(magnitude))); }

}  // namespace

std::byte encode_mu_law(int16_t sample) {
  const int magnitude = std::min(std::abs(static_cast<int>(sample)), kMuLawLargest) + kMuLawBias;
  const int exponent = bits_of(magnitude) - 8;  // 0 to 7: the bias has eight bits
  return packed(sample < 0, exponent, magnitude >> (exponent + 3), 0xFF);
}

std::byte encode_a_law(int16_t sample) {
  const bool positive = sample >= 0;
  const int magnitude = positive ? sample : -1 - sample;  // 0 to 32767
  const int exponent = std::max(bits_of(magnitude) - kALawFirstBits, 0);
  return packed(positive, exponent, magnitude >> (std::max(exponent, 1) + 3), 0x55);
}

}  // namespace syrinx
