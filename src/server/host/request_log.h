// Lines on the standard error, written by a thread of their own: who logs never waits for the disk or a terminal.  What
// there is no room for is dropped and counted, and what nobody takes is left behind at the end.  Lines hold no text and
// no sound of a user, and no address.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"

namespace syrinx::server {

class RequestLog {
 public:
  static constexpr size_t kMaxLines = 4096;

  static constexpr std::chrono::seconds kLastWait{4};  // a machine that stands still loses no line of what it has done

  explicit RequestLog(int descriptor);  // not owned
  // Writes what is left, as far as it is taken within kLastWait.  A write that waits longer goes on by itself: the
  // descriptor should then live as long as the process, as the standard error does.
  ~RequestLog();
  // Makes the thread; once.  kUnavailable: it cannot be made.
  Status start();
  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;

  void write(std::string line);  // without its end; any thread
  uint64_t dropped() const;

 private:
  // Shared with the thread, which may outlive the log.
  struct Shared {
    int descriptor = -1;
    std::mutex mutex;
    std::condition_variable changed, ended;
    std::deque<std::string> lines;  // the following by mutex
    uint64_t dropped = 0;
    bool closing = false, has_ended = false;
  };
  static void run(Shared& shared);

  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::thread thread_;
};

// "2026-11-22T07:01:33.123Z"
std::string utc_now();
// To the microsecond, as a line writes it.
double milliseconds(double seconds);

}  // namespace syrinx::server
