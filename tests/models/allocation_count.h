// Counts what C++ code allocates with new, and our buffers, whether they come from the system or not; linking
// allocation_count.cc replaces the global operators.
#pragma once

#include <cstddef>

namespace syrinx {
size_t allocation_count();
// Whether that is all of them; ThreadSanitizer's build counts buffers alone.
bool allocations_are_counted();
}  // namespace syrinx
