// Bytes that a weight takes in a precision.
#pragma once

#include "tensor/precision.h"

namespace syrinx::bench {

// Scales and what stays wider are not counted: what is read may be more, never less.
constexpr double bytes_a_weight(Precision precision) {
  switch (precision) {
    case Precision::kF32: return 4;
    case Precision::kBf16: return 2;
    case Precision::kInt8: return 1;
    case Precision::kInt4: return 0.5;
  }
  return 4;
}

}  // namespace syrinx::bench
