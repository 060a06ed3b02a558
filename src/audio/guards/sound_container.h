// Containers of sound that FFmpeg's libraries read for us: known by their beginning, walked to see whether they are
// whole.
//
// FFmpeg takes a file that ends too early for a shorter one; the walks below follow the sizes that the file itself
// gives. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace syrinx {

enum class SoundContainer { kMatroska, kMp4, kAdts };

// By the EBML header, a box with which MP4 or QuickTime begin, or two headers of AAC frames, each where the one before
// says.
std::optional<SoundContainer> container_of(std::span<const std::byte> file);

// The frames of an AAC stream, as far as they are whole, and what stands behind them unless that is part of one.
struct AdtsFrames {
  size_t bytes = 0;
  Status status = {};  // kDataLoss: cut off in a frame
};
AdtsFrames check_adts_frames(std::span<const std::byte> file, const std::string& name);

// kDataLoss for a file that ends before what it announces; a recording of unknown length (live WebM, fragmented MP4)
// may end behind any of its parts.  What cannot be followed is left to the decoder.  `name` stands in messages.
// The result is that of check_mp4_boxes() or check_matroska_elements(), empty for other containers.
Result<std::vector<size_t>> check_container(std::span<const std::byte> file, SoundContainer container,
                                            const std::string& name);

// Error for a file that needs the libraries where they are missing: `cause` says why.
Error no_decoder(SoundContainer container, const std::string& name, const Error& cause);

}  // namespace syrinx
