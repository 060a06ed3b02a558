// The largest of some values and where it first stands.
#pragma once

#include <cstddef>
#include <span>

namespace syrinx::kernels {

struct Peak {
  float value = 0;
  size_t index = 0;  // of several equal ones the first, as torch.argmax on the CPU
};

// One value or more, at any alignment.  A NaN among them makes the value NaN and the index 0.  Thread-safe.
Peak argmax(std::span<const float> values);

}  // namespace syrinx::kernels
