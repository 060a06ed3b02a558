// Inflates a whole gzip file (RFC 1952) into memory: how some archives of weights are stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace syrinx {

// True if the bytes begin like a gzip file.
bool looks_like_gzip(std::span<const std::byte> bytes);

struct UnmapPages {
  size_t size = 0;
  void operator()(std::byte* data) const;
};

// Owns what was unpacked.  Not a Buffer, which aborts where the system has no memory to give: a file asks for it here.
struct Inflated {
  std::unique_ptr<std::byte[], UnmapPages> memory;  // what was not written takes no memory
  size_t size = 0;
  std::span<const std::byte> bytes() const { return {memory.get(), size}; }
};

// `name` stands in messages.  kDataLoss: damaged, or more than one file in a row; kLimitExceeded: more than
// `max_bytes`, or more than 8 times the packed size and 16 MiB, as no weights are, or more memory than there is.
// `modulus`: of the size that such a file says; tests make it smaller.
Result<Inflated> inflate_gzip(std::span<const std::byte> bytes, size_t max_bytes, const std::string& name,
                              uint64_t modulus = uint64_t{1} << 32);

}  // namespace syrinx
