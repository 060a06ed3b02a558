// Counts what C++ code allocates with new; linking allocation_count.cc replaces the global operators.  Large buffers of
// ours come from the system and are not seen here.
#pragma once

#include <cstddef>

namespace syrinx {
size_t allocation_count();
}
