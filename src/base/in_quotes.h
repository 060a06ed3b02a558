// A foreign text, such as a key of a file, made safe for a message: short, and harmless to a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace syrinx {

// At most `max_bytes` of the text, cut between UTF-8 characters, with dots behind when that is not all of it.  Control
// characters, U+0080 to U+009F among them, become question marks.  Pure, thread-safe.
std::string shortened(std::string_view text, size_t max_bytes = 60);
// The same in quotation marks, and how long the text is when that is not all of it.
std::string in_quotes(std::string_view text, size_t max_bytes = 60);

}  // namespace syrinx
