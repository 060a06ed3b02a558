// Bytes in memory with a place in them, for the decoders that read through callbacks.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <span>

namespace syrinx {

struct MemorySource {
  std::span<const std::byte> bytes;
  size_t at = 0;

  size_t read(void* out, size_t size) {
    const size_t count = std::min(size, bytes.size() - at);
    if (count > 0) std::memcpy(out, bytes.data() + at, count);
    at += count;
    return count;
  }
  // As lseek(): the new place, or -1 if it is outside.
  off_t seek(off_t offset, int whence) {
    const auto size = static_cast<off_t>(bytes.size());
    const off_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? static_cast<off_t>(at) : size;
    if (offset < -base || offset > size - base) return -1;
    at = static_cast<size_t>(base + offset);
    return base + offset;
  }
};

}  // namespace syrinx
