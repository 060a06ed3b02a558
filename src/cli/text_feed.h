// Gives a session its text from a file descriptor as it arrives, and cancels the session when the user asks to stop.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "base/result.h"
#include "syrinx/engine.hpp"

namespace syrinx::cli {

class TextFeed {
 public:
  static constexpr int kNoText = -1;

  // Reads `descriptor` to its end on a thread of its own; kNoText: only watches for Ctrl-C.  Both must outlive it.
  // The destructor cancels the session, so that no write waits: keep the feed as long as the session is read.
  TextFeed(Session& session, int descriptor);
  ~TextFeed();
  TextFeed(const TextFeed&) = delete;
  TextFeed& operator=(const TextFeed&) = delete;

  // Why reading ended early, if it did: then the session is cancelled too, and this is the reason.
  Status status() const;

 private:
  void watch();
  void read(int descriptor);
  Status read_all(int descriptor);

  Session& session_;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  Status status_;
  std::thread watcher_;
  std::thread reader_;  // only where there is a descriptor
};

}  // namespace syrinx::cli
