#include "audio/encode/byte_sink.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/signals.h"

namespace syrinx {
namespace {

Status write_all(int descriptor, const std::string& name, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(written));
      continue;
    }
    const int error = errno;
    if (error == EINTR && cancel_requested()) return fail(Code::kCancelled, "stopped while writing to {}", name);
    if (error == EAGAIN) {  // somebody made the descriptor non-blocking
      struct pollfd ready {
        descriptor, POLLOUT, 0
      };
      ::poll(&ready, 1, 1000);
    } else if (error == EPIPE) {
      return fail(Code::kIo, "cannot write to {}: the reader has gone away", name);
    } else if (error != EINTR) {
      return fail(Code::kIo, "cannot write to {}: {}", name, std::strerror(error));
    }
    if (cancel_requested()) return fail(Code::kCancelled, "stopped while writing to {}", name);
  }
  return {};
}

}  // namespace

ByteSink memory_sink(std::vector<std::byte>& memory) {
  ByteSink sink;
  sink.append = [&memory](std::span<const std::byte> bytes) -> Status {
    memory.insert(memory.end(), bytes.begin(), bytes.end());
    return {};
  };
  sink.patch = [&memory](uint64_t offset, std::span<const std::byte> bytes) -> Status {
    if (offset > memory.size() || bytes.size() > memory.size() - offset) {
      return fail(Code::kInternal, "patch of {} bytes at {}, past the {} written", bytes.size(), offset, memory.size());
    }
    std::copy(bytes.begin(), bytes.end(), memory.begin() + static_cast<std::ptrdiff_t>(offset));
    return {};
  };
  return sink;
}

ByteSink descriptor_sink(int descriptor, const std::string& name) {
  ByteSink sink;
  sink.append = [descriptor, name](std::span<const std::byte> bytes) { return write_all(descriptor, name, bytes); };
  return sink;
}

}  // namespace syrinx
