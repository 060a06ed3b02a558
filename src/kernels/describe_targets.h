// The vector targets of this build and of this processor, as text for people.  Thread-safe.
#pragma once

#include <string>

namespace syrinx::kernels {

std::string describe_built_targets();  // Highway targets in the binary, best first: "AVX3 AVX2 SSE4 SSSE3 SCALAR"
std::string describe_chosen_target();  // the one in use, within the limit set on it: "AVX3 with VNNI and BF16"

}  // namespace syrinx::kernels
