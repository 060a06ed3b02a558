#include "server/host/request_log.h"

#include <fmt/chrono.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <string_view>
#include <system_error>
#include <utility>

namespace syrinx::server {
namespace {

// A log that cannot be written must not become a second failure.  False: the line is lost.
bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (written < 0 && errno == EAGAIN) {  // whoever started us wants no waiting
      pollfd room{.fd = descriptor, .events = POLLOUT, .revents = 0};
      ::poll(&room, 1, -1);
    } else if (written == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace

RequestLog::RequestLog(int descriptor) { shared_->descriptor = descriptor; }

RequestLog::~RequestLog() {
  if (!thread_.joinable()) return;
  std::unique_lock lock(shared_->mutex);
  shared_->closing = true;
  shared_->changed.notify_all();
  const bool ended = shared_->ended.wait_for(lock, kLastWait, [this] { return shared_->has_ended; });
  lock.unlock();
  if (ended)
    thread_.join();
  else
    thread_.detach();  // a pipe that nobody reads holds it, and must not hold the process
}

Status RequestLog::start() {
  try {
    thread_ = std::thread([shared = shared_] { run(*shared); });
  } catch (const std::system_error& error) {
    return fail(Code::kUnavailable, "no thread can be made for the log: {}; raise the limit of threads", error.what());
  }
  return {};
}

void RequestLog::write(std::string line) {
  line += '\n';
  const std::lock_guard lock(shared_->mutex);
  if (shared_->lines.size() == kMaxLines) {
    ++shared_->dropped;
    return;
  }
  shared_->lines.push_back(std::move(line));
  shared_->changed.notify_one();
}

uint64_t RequestLog::dropped() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->dropped;
}

// The thread's entry; nothing in it throws.
void RequestLog::run(Shared& shared) {
  std::unique_lock lock(shared.mutex);
  for (;;) {
    shared.changed.wait(lock, [&] { return !shared.lines.empty() || shared.closing; });
    if (shared.lines.empty()) break;
    const std::string line = std::move(shared.lines.front());
    shared.lines.pop_front();
    lock.unlock();
    const bool written = write_all(shared.descriptor, line);
    lock.lock();
    if (!written) ++shared.dropped;
  }
  shared.has_ended = true;
  shared.ended.notify_all();
}

double milliseconds(double seconds) { return std::round(seconds * 1e6) / 1e3; }

std::string utc_now() {
  using std::chrono::system_clock;
  const auto since =
      std::chrono::duration_cast<std::chrono::milliseconds>(system_clock::now().time_since_epoch()).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(since / 1000)), since % 1000);
}

}  // namespace syrinx::server
