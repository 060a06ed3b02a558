#include "cli/chat/typed_text.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/signals.h"

namespace syrinx::cli {
namespace {

constexpr int kLookMs = 50;  // how often Ctrl-C is looked at
constexpr size_t kReadBytes = 64 << 10;

// Appends what there is, waiting for it.  False at the end.
Result<bool> read_more(int descriptor, const std::string& name, std::string& text) {
  for (;;) {
    if (cancel_requested()) return fail(Code::kCancelled, "stopped while reading");
    pollfd wait{descriptor, POLLIN, 0};
    const int ready = ::poll(&wait, 1, kLookMs);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    char bytes[kReadBytes];
    const ssize_t count = ::read(descriptor, bytes, sizeof(bytes));
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) return fail(Code::kIo, "cannot read {}: {}", name, std::strerror(errno));
    text.append(bytes, static_cast<size_t>(count));
    return count > 0;
  }
}

}  // namespace

Result<std::string> read_to_end(int descriptor, size_t most, const std::string& name) {
  std::string text;
  for (;;) {
    SYRINX_TRY(const bool is_open, read_more(descriptor, name, text));
    if (text.size() > most) return fail(Code::kLimitExceeded, "{} holds more than {} bytes, the limit", name, most);
    if (!is_open) return text;
  }
}

Result<std::optional<std::string>> LineReader::next() {
  bool is_too_long = false;
  for (size_t looked = 0;;) {
    const size_t end = pending_.find('\n', looked);
    if (end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      if (is_too_long || line.size() > most_)
        return fail(Code::kLimitExceeded, "the line is longer than {} bytes; give a shorter one", most_);
      return std::optional(std::move(line));
    }
    is_too_long = is_too_long || pending_.size() > most_;
    if (is_too_long) pending_.clear();
    looked = pending_.size();
    auto more = read_more(descriptor_, "standard input", pending_);
    if (!more) {
      pending_.clear();
      return tl::unexpected(more.error());
    }
    if (*more) continue;
    if (is_too_long) return fail(Code::kLimitExceeded, "the line is longer than {} bytes; give a shorter one", most_);
    if (pending_.empty()) return std::optional<std::string>();
    return std::optional(std::exchange(pending_, {}));
  }
}

}  // namespace syrinx::cli
