#include "audio/sandbox/run_decoder.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "audio/sandbox/sandbox.h"

namespace syrinx {
namespace {

// FFmpeg's index of the 4 Mi frames of a day of AAC takes up to 260 MB while it grows.
constexpr size_t kMemoryBytes = size_t{384} << 20;
// Without a block of sound; of a file of hours its tables are read first.
constexpr double kPatienceS = 1;
constexpr double kTableBytesPerS = 50e6;

bool has_socket() {
  int kind = 0;
  socklen_t size = sizeof kind;
  return ::getsockopt(kDecodeSocket, SOL_SOCKET, SO_TYPE, &kind, &size) == 0 && kind == SOCK_STREAM;
}

void close_all_others() {
  constexpr unsigned kFirst = kDecodeSocket + 1;
  if (::close_range(kFirst, ~0U, 0) == 0) return;
  for (unsigned descriptor = kFirst; descriptor < 65536; ++descriptor) ::close(static_cast<int>(descriptor));
}

// A system without memory ends this process, not the one with the models.
void be_first_out_of_memory() {
  const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  constexpr std::string_view kMost = "1000";
  const ssize_t written = ::write(file, kMost.data(), kMost.size());
  static_cast<void>(written);  // not allowed: as it was
  ::close(file);
}

}  // namespace

int run_decoder(const DecodeOne& decode, uint64_t least_cpu_s) {
  constexpr int kMisused = 2, kAlone = 1;
  if (!has_socket()) {
    std::fputs("syrinx-decode: other programs of Syrinx start this one, to decode a recording; it takes no arguments\n",
               stderr);
    return kMisused;
  }
  close_all_others();
  be_first_out_of_memory();
  ParentLink parent(kDecodeSocket);
  const Result<const Libav*> libav = find_libav();
  if (!libav) return parent.give_fault(DecodeFault::kNoLibraries, libav.error().message) ? 0 : kAlone;
  DecodeOrder order{};
  if (!parent.give_ready() || !parent.take_order(order)) return kAlone;
  const std::string refused =
      enter_sandbox({.memory_bytes = kMemoryBytes, .cpu_seconds = least_cpu_s + order.file_bytes / kFileBytesPerS});
  if (!refused.empty())
    return parent.give_fault(DecodeFault::kNoSandbox, "the system refuses a limit for their process: " + refused)
               ? 0
               : kAlone;
  parent.set_processor_time(kPatienceS + static_cast<double>(order.file_bytes) / kTableBytesPerS);
  const DecodeEnd end = decode(**libav, order, parent);
  const bool told = end.fault == DecodeFault::kNone ? parent.give_done() : parent.give_fault(end.fault, end.detail);
  return told ? 0 : kAlone;
}

}  // namespace syrinx
