#include "server/request_log.h"

#include <fmt/chrono.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <string_view>
#include <utility>

namespace syrinx::server {
namespace {

// A log that cannot be written must not become a second failure.
void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

RequestLog::RequestLog(int descriptor) : descriptor_(descriptor), thread_([this] { run(); }) {}

RequestLog::~RequestLog() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void RequestLog::write(std::string line) {
  const std::lock_guard lock(mutex_);
  if (lines_.size() == kMaxLines) {
    ++dropped_;
    return;
  }
  lines_.push_back(std::move(line));
  changed_.notify_one();
}

uint64_t RequestLog::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void RequestLog::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !lines_.empty() || closing_; });
    if (lines_.empty()) return;
    const std::deque<std::string> lines = std::exchange(lines_, {});
    lock.unlock();
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    write_all(descriptor_, text);
    lock.lock();
  }
}

double milliseconds(double seconds) { return std::round(seconds * 1e6) / 1e3; }

std::string utc_now() {
  using std::chrono::system_clock;
  const auto since =
      std::chrono::duration_cast<std::chrono::milliseconds>(system_clock::now().time_since_epoch()).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(since / 1000)), since % 1000);
}

}  // namespace syrinx::server
