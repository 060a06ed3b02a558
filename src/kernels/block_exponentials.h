// Exponentials of some values below their greatest, summed in blocks, and the greatest value of each block: how much of
// a softmax lies where, in one pass that writes no softmax (cpu/softmax.cc).
#pragma once

#include <cstddef>
#include <span>

namespace syrinx::kernels {

inline constexpr size_t kExponentialBlock = 64;
inline constexpr float kLeastExponent = -80.0f;
// Relative, of each exponential that is summed: 1.5 units of its last place.
inline constexpr double kExponentialError = 1.5 * 0x1p-23;

// sums[b] is the sum of exp((x - peak) / temperature) over block b of `values`, without those of exponents below
// kLeastExponent; maxima[b] is its greatest value, or the lowest finite float where that is greater.  The last block
// may be short; sums and maxima have a place for each block. `peak` is finite and no less than any value, the
// temperature finite and above zero, and no value is NaN.  The exponent is computed in float as written, term by term.
// Thread-safe.
void block_exponentials(std::span<const float> values, float peak, float temperature, std::span<double> sums,
                        std::span<float> maxima);

constexpr size_t exponential_blocks(size_t values) { return (values + kExponentialBlock - 1) / kExponentialBlock; }

}  // namespace syrinx::kernels
