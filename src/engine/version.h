// What this build is: for `syrinx --version`, the library's syrinx_version() and bug reports.
#pragma once

#include <string>

namespace syrinx {

const char* version();        // "0.1.0"
const char* commit();         // short hash of the sources, "+" when they had changes; "unknown" outside a checkout
const char* compiler();       // "GCC 12.2.0", "Clang 14.0.6"
const char* build_type();     // "Release", ...
std::string built_targets();  // Highway targets in the binary, best first: "AVX3 AVX2 SSE4 SSSE3 SCALAR"
std::string chosen_target();  // the one this processor (or the limit set on it) runs: "AVX3"

}  // namespace syrinx
