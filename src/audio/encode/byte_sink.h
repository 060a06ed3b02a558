// Where encoded bytes go: a file, memory, a socket.  Both functions answer with a Status, and the first error ends the
// encoding that feeds them.  They are called from the thread that calls the encoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/scoped_file.h"

namespace syrinx {

struct ByteSink {
  std::function<Status(std::span<const std::byte> bytes)> append;
  // Overwrites bytes already appended; empty where that cannot be done (pipe, socket).  Headers then say "unknown".
  std::function<Status(uint64_t offset, std::span<const std::byte> bytes)> patch;
};

// `file` must outlive the sink; committing it stays the caller's.
inline ByteSink file_sink(ScopedFile& file) {
  ByteSink sink;
  sink.append = [&file](std::span<const std::byte> bytes) { return file.write(bytes); };
  if (file.seekable()) {
    sink.patch = [&file](uint64_t offset, std::span<const std::byte> bytes) { return file.write_at(offset, bytes); };
  }
  return sink;
}

// `memory` must outlive the sink.
ByteSink memory_sink(std::vector<std::byte>& memory);

// Writes to an open descriptor that stays the caller's, such as standard output; `name` is used in messages.
ByteSink descriptor_sink(int descriptor, const std::string& name);

}  // namespace syrinx
