// Inflates a whole gzip file (RFC 1952) into memory: how some archives of weights are stored.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "tensor/buffer.h"

namespace syrinx {

// True if the bytes begin like a gzip file.
bool looks_like_gzip(std::span<const std::byte> bytes);

struct Inflated {
  Buffer<std::byte> memory;  // its end may lie behind the content's; what was not written takes no memory
  size_t size = 0;
  std::span<const std::byte> bytes() const { return memory.span().first(size); }
};

// `name` stands in messages.  kDataLoss: damaged, or more than one file in a row; kLimitExceeded: more than
// `max_bytes`, or more than 64 times the packed size and 64 MiB, as no weights are.
Result<Inflated> inflate_gzip(std::span<const std::byte> bytes, size_t max_bytes, const std::string& name);

}  // namespace syrinx
