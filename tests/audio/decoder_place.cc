// Tests start the decoder of their own build.
#include <cstdlib>

namespace {
[[maybe_unused]] const bool placed = ::setenv("SYRINX_DECODE", SYRINX_DECODE_BUILT, /*replace=*/0) == 0;
}  // namespace
