// The line of a terminal that shows what is being said, written over as it grows.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace syrinx::cli {

// Characters that make the terminal's current line, of `columns` columns, show the end of `text` that fits: from the
// line's beginning, over its content, and only the rest erased, so that nothing flickers.  The first `stable_bytes`
// stand in plain type, text that may still change is faint.  Control characters become blanks.  Pure.
std::string live_line(std::string_view text, size_t stable_bytes, size_t columns);

// Columns of the terminal behind the descriptor; 80 where that is unknown.
size_t terminal_columns(int descriptor);

}  // namespace syrinx::cli
