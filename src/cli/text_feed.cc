#include "cli/text_feed.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/signals.h"

namespace syrinx::cli {
namespace {

constexpr int kLookMs = 50;  // how often Ctrl-C is looked at
constexpr size_t kReadBytes = 64 << 10;

}  // namespace

TextFeed::TextFeed(Session& session, int descriptor) : session_(session), watcher_([this] { watch(); }) {
  if (descriptor != kNoText) reader_ = std::thread([this, descriptor] { read(descriptor); });
}

TextFeed::~TextFeed() {
  stop_ = true;
  session_.cancel();
  watcher_.join();
  if (reader_.joinable()) reader_.join();
}

Status TextFeed::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void TextFeed::watch() {
  while (!stop_ && !cancel_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(kLookMs));
  session_.cancel();
}

void TextFeed::read(int descriptor) {
  Status status = read_all(descriptor);
  if (status) return;
  {
    const std::lock_guard lock(mutex_);
    status_ = std::move(status);
  }
  session_.cancel();
}

Status TextFeed::read_all(int descriptor) {
  std::vector<char> bytes(kReadBytes);
  while (!stop_) {
    if (cancel_requested()) return {};
    pollfd wait{descriptor, POLLIN, 0};
    const int ready = ::poll(&wait, 1, kLookMs);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t count = ::read(descriptor, bytes.data(), bytes.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) return fail(Code::kIo, "cannot read standard input: {}", std::strerror(errno));
    if (count == 0) {
      session_.finish();
      return {};
    }
    // Its failure is the session's own, which next() tells.
    if (session_.write({bytes.data(), static_cast<size_t>(count)}) != SYRINX_OK) return {};
  }
  return {};
}

}  // namespace syrinx::cli
