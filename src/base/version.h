// Version and build of this program: for `syrinx --version`, syrinx_version() and bug reports.
#pragma once

namespace syrinx {

const char* version();     // "0.1.0"
const char* commit();      // short hash of the sources, "+" when they had changes; "unknown" outside a checkout
const char* compiler();    // "GCC 12.2.0", "Clang 14.0.6"
const char* build_type();  // "Release", ...

}  // namespace syrinx
