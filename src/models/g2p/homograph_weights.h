// The file homographs.bin as a part of the library (cmake/EmbedBytes.cmake).
#pragma once

#include <cstddef>

namespace syrinx::g2p {

extern const unsigned char homograph_weights[];
extern const size_t homograph_weights_bytes;

}  // namespace syrinx::g2p
