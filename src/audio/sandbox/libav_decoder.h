// A recording by FFmpeg's libraries, in whatever process: the sandbox is around it, not in it.
#pragma once

#include <string>

#include "audio/child/decode_protocol.h"
#include "audio/libav.h"
#include "audio/sandbox/decode_host.h"

namespace syrinx {

struct DecodeEnd {
  DecodeFault fault = DecodeFault::kNone;
  std::string detail = {};
};

// Gives the first audio track of the host's file to the host; other tracks are skipped.  Only that file is read,
// whatever it refers to.  Where the host is gone, it ends with any fault.
DecodeEnd decode_libav(const Libav& libav, const DecodeOrder& order, DecodeHost& host);

}  // namespace syrinx
