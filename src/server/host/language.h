// Languages as clients name them.  Pure, thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace syrinx::server {

// Whether one of them is the other or part of it: "en_US" and "en-us" are one, "en" is part of both; the empty one is
// none.
bool is_same_language(std::string_view a, std::string_view b);

// The best match of `wanted`: itself, else the first more specific one ("pt-BR" for "pt"), else the first less specific
// one ("pt" for "pt-PT"); null: none.
const std::string* closest_language(std::span<const std::string> known, std::string_view wanted);

// That which a recogniser is told where these are expected: the only one, or of several none, as it finds out which.
std::string language_expected(std::span<const std::string> languages);

}  // namespace syrinx::server
