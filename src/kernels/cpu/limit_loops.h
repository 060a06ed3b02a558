// The loops behind limits.cc: arithmetic on registers alone.  A loop that this build or processor lacks has run ==
// nullptr.
#pragma once

#include <cstddef>
#include <cstdint>

namespace syrinx::kernels {

struct PeakLoop {
  float (*run)(size_t iterations) = nullptr;  // returns something that depends on all the work
  double operations = 0;                      // of one iteration
};

PeakLoop f32_peak();
PeakLoop bf16_peak();
PeakLoop int8_dot_peak();
PeakLoop int8_exact_peak();
PeakLoop int8_7bit_peak();

// Reads all of [data, data + size), size a multiple of 4096, prefetching that far ahead (0: not at all).
uint32_t read_all(const uint32_t* data, size_t size_bytes, size_t prefetch_bytes);

}  // namespace syrinx::kernels
