// The life of a decoding child: it loads the libraries, says that it is ready, waits for an order, enters the sandbox,
// decodes.
#pragma once

#include <functional>

#include "audio/sandbox/libav_decoder.h"
#include "audio/sandbox/parent_link.h"

namespace syrinx {

using DecodeOne = std::function<DecodeEnd(const Libav& libav, const DecodeOrder& order, ParentLink& parent)>;

// On kDecodeSocket.  Returns the status to exit with.
int run_decoder(const DecodeOne& decode);

}  // namespace syrinx
