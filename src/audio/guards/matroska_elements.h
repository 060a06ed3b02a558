// The elements of a WebM or Matroska file, walked before FFmpeg sees them.
//
// FFmpeg's reader keeps a hundred bytes of memory for an entry of two or three, and looks for each tag and chapter
// among all others; behind an error it goes on at whatever looks like a table, wherever that is.  Tables that sound
// does not need are hidden from it, and the entries of all that it could still take for one are counted. Pure,
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace syrinx {

inline constexpr size_t kMaxMatroskaEntries =
    8192;  // tables, and elements in the tracks' table and in what looks like one

// As the identifier of an element that is to be passed over; nobody uses it.
inline constexpr std::string_view kHiddenElement = "\x1e\xee\xee\xee";

// Where in `file` the identifiers of elements stand, ascending, for which the reader has to see kHiddenElement: tables
// of contents, tags, chapters and attachments.  kDataLoss: the file ends before what it announces.  What cannot be
// followed is left to the reader.  kLimitExceeded: more entries than above.  `name` stands in messages.
Result<std::vector<size_t>> check_matroska_elements(std::span<const std::byte> file, const std::string& name);

}  // namespace syrinx
