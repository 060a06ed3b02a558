// Counts what C++ code allocates with new, and our buffers, whether they come from the system or not; linking
// allocation_count.cc replaces the global operators.
#pragma once

#include <cstddef>

namespace syrinx {
size_t allocation_count();
// The n-th allocation with new from now on is refused, once: bad_alloc.  0: none.
void refuse_allocation(size_t n);
// Whether one that was asked for is still to come.
bool refuses_allocation();
// Whether that is all of them; ThreadSanitizer's build counts buffers alone.
bool allocations_are_counted();
}  // namespace syrinx
