// Character references of HTML in a text: "&amp;", "&#39;", "&#xE9;".
#pragma once

#include <cstddef>
#include <string_view>

namespace syrinx::text {

struct Entity {
  char32_t character = 0;  // 0: none stands there
  size_t bytes = 0;
};

// The reference that `text` begins with.
Entity parse_entity(std::string_view text);

}  // namespace syrinx::text
