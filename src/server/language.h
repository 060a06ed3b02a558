// Languages as clients name them.  Pure, thread-safe.
#pragma once

#include <string_view>

namespace syrinx::server {

// Whether one of them is the other or part of it: "en_US" and "en-us" are one, "en" is part of both; the empty one is
// none.
bool is_same_language(std::string_view a, std::string_view b);

}  // namespace syrinx::server
