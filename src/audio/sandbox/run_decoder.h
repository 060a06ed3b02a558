// The life of a decoding child: it loads the libraries, says that it is ready, waits for an order, enters the sandbox,
// decodes.
#pragma once

#include <cstdint>
#include <functional>

#include "audio/sandbox/libav_decoder.h"
#include "audio/sandbox/parent_link.h"

namespace syrinx {

using DecodeOne = std::function<DecodeEnd(const Libav& libav, const DecodeOrder& order, ParentLink& parent)>;

// By the size of the file, besides; the slowest kind known is AMR on a small ARM, above 50 kB/s.
inline constexpr uint64_t kLeastCpuS = 10, kFileBytesPerS = 20000;

// On kDecodeSocket.  Returns the status to exit with.
int run_decoder(const DecodeOne& decode, uint64_t least_cpu_s = kLeastCpuS);

}  // namespace syrinx
