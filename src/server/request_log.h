// Lines on the standard error, written by a thread of their own: who logs never waits for the disk or a terminal.  What
// there is no room for is dropped and counted.  Lines hold no text and no sound of a user, and no address.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

namespace syrinx::server {

class RequestLog {
 public:
  static constexpr size_t kMaxLines = 4096;

  explicit RequestLog(int descriptor);
  ~RequestLog();  // writes what is left
  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;

  void write(std::string line);  // without its end; any thread
  uint64_t dropped() const;

 private:
  void run();

  const int descriptor_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  uint64_t dropped_ = 0;
  bool closing_ = false;
  std::thread thread_;  // last: it uses the above
};

// "2026-11-22T07:01:33.123Z"
std::string utc_now();
// To the microsecond, as a line writes it.
double milliseconds(double seconds);

}  // namespace syrinx::server
