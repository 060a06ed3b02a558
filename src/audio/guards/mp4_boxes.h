// The boxes of an MP4 or QuickTime file, walked before FFmpeg sees them.
//
// FFmpeg's reader believes the counts of a header: 130 bytes of a track can announce 11 million samples, for each of
// which it makes an entry of its index while it opens the file, and an edit list is searched through all of them.  What
// costs memory or time there is counted here first; what is not needed for sound is hidden from it.
// Pure, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace syrinx {

inline constexpr size_t kMaxMp4Tracks = 16;
inline constexpr size_t kMaxMp4Edits = 64;  // of one track
// Sum over all tracks, as often as edits play them, and fragments; 4 Mi frames of AAC at 48 kHz are a day.  FFmpeg's
// index has 24 bytes for each.
inline constexpr uint64_t kMaxMp4Samples = uint64_t{1} << 22;
// Fragments times tracks; FFmpeg remembers 64 bytes of each.
inline constexpr uint64_t kMaxMp4Fragments = uint64_t{1} << 20;

// As the name of a box that is to be passed over.
inline constexpr std::string_view kHiddenBox = "skip";

// Where in `file` the names of boxes stand, ascending, for which the reader has to see kHiddenBox: all whose cost was
// not checked.  kDataLoss: the file ends before what it announces, a table is larger than its box, or the samples
// together are larger than the file.  kLimitExceeded: more than the limits above.  `name` stands in messages.
Result<std::vector<size_t>> check_mp4_boxes(std::span<const std::byte> file, const std::string& name);

}  // namespace syrinx
