// How wide text stands on a terminal or in a subtitle, and where it may be cut.  Pure, thread-safe; any bytes are
// taken, malformed ones as U+FFFD.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace syrinx::text {

// Columns of a fixed-width font: 2 for wide characters (East Asian, most emoji), 0 for marks and controls.
size_t columns(std::string_view text);
// The most bytes from the front that stand in `limit` columns, graphemes whole; at the back the same from the end.
size_t bytes_within(std::string_view text, size_t limit);
std::string_view tail_within(std::string_view text, size_t limit);

// The text with blanks for control characters, U+0080 to U+009F among them, but for line breaks, and for what is no
// UTF-8: words of a model or a file must not steer a terminal.  As many bytes.
std::string printable(std::string_view text);

// Words between blanks; one that is wider than `limit` (languages without blanks, addresses) in pieces that are not.
// `limit` >= 2.
std::vector<std::string> words_within(std::string_view text, size_t limit);

bool ends_in_punctuation(std::string_view word);

// Lines of at most `limit` columns, words whole.  What fits in two lines is cut where they are most alike, rather after
// a punctuation mark; more goes line by line.  For words as from words_within().
std::vector<std::string> balanced_lines(const std::vector<std::string>& words, size_t limit);

}  // namespace syrinx::text
