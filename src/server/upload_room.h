// How many bytes all uploads may hold together, from the moment that one may begin to the end of the work on it.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

namespace syrinx::server {

class UploadRoom {
 public:
  explicit UploadRoom(size_t bytes) : left_(std::make_shared<std::atomic<size_t>>(bytes)) {}

  // Takes so much for as long as what is returned lives, which may be longer than the room; null: there is not so much
  // left.  Any thread.
  std::shared_ptr<const void> take(size_t bytes);
  size_t left() const { return left_->load(std::memory_order_relaxed); }

 private:
  const std::shared_ptr<std::atomic<size_t>> left_;
};

}  // namespace syrinx::server
