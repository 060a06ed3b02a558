// The pages of an Ogg file (RFC 3533, section 6), looked at before a decoder sees them: the libraries pass over pages
// that are damaged or missing, and take a second recording behind the first for more of the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace syrinx {

enum class OggCodec : uint8_t { kVorbis, kOpus };

// Codec of the first known stream, when every page is whole, has its checksum, and all streams begin together.  Bytes
// behind the last page contain no page.  Pure, thread-safe.  kDataLoss: cut off in a page, damaged; kUnsupported:
// another recording follows, or neither Vorbis nor Opus is in it.
Result<OggCodec> check_ogg_pages(std::span<const std::byte> file, const std::string& name);

}  // namespace syrinx
