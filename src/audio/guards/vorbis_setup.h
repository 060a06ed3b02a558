// The codebooks of an Ogg Vorbis file (Xiph.Org's Vorbis I specification, 3.2.1), looked at before libvorbis sees them:
// it keeps bytes of its stack for each entry and memory for each value, and a book of a dozen bytes may announce eight
// million of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace syrinx {

// Ten times what libvorbis' encoder writes at any quality and rate: 6561 entries of a book, 64 thousand values of all.
inline constexpr uint64_t kMaxVorbisEntries = uint64_t{1} << 16;  // of a book
inline constexpr uint64_t kMaxVorbisValues = uint64_t{1} << 20;   // of a stream's books

// Checks a file that check_ogg_pages() calls Vorbis.  Books that libvorbis refuses by itself pass.  Pure, thread-safe.
// kLimitExceeded: too large a book, or too many streams side by side; kDataLoss: a book without dimensions, or a stream
// that begins twice; kUnavailable: no memory.
Status check_vorbis_setup(std::span<const std::byte> file, const std::string& name);

}  // namespace syrinx
