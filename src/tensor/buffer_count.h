// How many buffers of this process were made, large or small: what a step must leave as it is.
#pragma once

#include <cstddef>

namespace syrinx {

size_t buffer_count();  // any thread

}  // namespace syrinx
