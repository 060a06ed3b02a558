// XXH64, a fast hash that tells damaged bytes from whole ones (https://github.com/Cyan4973/xxHash, its specification
// doc/xxhash_spec.md, seed 0).  Not for anything that an enemy may choose: sha256.h is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace syrinx {

uint64_t xxhash64(std::span<const std::byte> bytes);

}  // namespace syrinx
