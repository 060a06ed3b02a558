// The pages of an Ogg file (RFC 3533, section 6), looked at before a decoder sees them: the libraries pass over pages
// that are damaged or missing, and take a second recording behind the first for more of the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace syrinx {

enum class OggCodec : uint8_t { kVorbis, kOpus, kFlac };

struct OggPages {
  OggCodec codec = OggCodec::kVorbis;  // of the first known stream
  size_t bytes = 0;                    // of the pages before a fault: each is whole and has its checksum
  Status status = {};                  // the fault, kDataLoss: cut off in a page, damaged, a page behind something else
};

// All streams begin together; bytes behind the last page contain no page.  Pure, thread-safe.  kDataLoss: a fault
// before all streams have begun, of which none is known; kUnsupported: another recording follows, or none of these
// codecs is in it.
Result<OggPages> check_ogg_pages(std::span<const std::byte> file, const std::string& name);

}  // namespace syrinx
