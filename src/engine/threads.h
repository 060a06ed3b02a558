// How many threads a model computes with.  Thread-safe.
#pragma once

#include "base/result.h"

namespace syrinx {

// As many threads as this process may use cores, up to eight: the measured default.
int default_threads();
// The default in place of 0; kInvalidArgument outside 0 to 64.
Result<int> choose_threads(int threads);

}  // namespace syrinx
