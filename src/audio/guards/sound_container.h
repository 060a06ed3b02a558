// Containers of sound that FFmpeg's libraries read for us, known by their beginning.  Pure, thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"

namespace syrinx {

enum class SoundContainer { kMatroska, kMp4, kAdts, kAsf, kAmr, kOggFlac };

// By the EBML header, a box with which MP4 or QuickTime begin, two headers of AAC frames, each where the one before
// says, or the identifiers of ASF (WMA) and AMR.  Never kOggFlac: check_ogg_pages() knows those.
std::optional<SoundContainer> container_of(std::span<const std::byte> file);

// Error for a file that needs the libraries where they are missing: `cause` says why.
Error no_decoder(SoundContainer container, const std::string& name, const Error& cause);

}  // namespace syrinx
