// How one thread tells another that there is something new: once for all that the other has not looked at yet.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <utility>

namespace syrinx::server {

class Waker {
 public:
  // tell() calls `wake`, from any thread; empty: nothing.  When this returns, the previous one is not running.
  void set(std::function<void()> wake) {
    const std::lock_guard lock(mutex_);
    wake_ = std::move(wake);
  }
  // If the call throws, the next news are told.
  void tell() {
    if (told_.exchange(true, std::memory_order_acq_rel)) return;
    const std::lock_guard lock(mutex_);
    if (!wake_) return;
    try {
      wake_();
    } catch (...) {
      told_.store(false, std::memory_order_release);
      throw;
    }
  }
  // Before looking: what was pushed before is seen, whoever pushes after tells.
  void taken() { told_.exchange(false, std::memory_order_acq_rel); }

 private:
  std::atomic<bool> told_{false};
  std::mutex mutex_;
  std::function<void()> wake_;  // by mutex_
};

}  // namespace syrinx::server
