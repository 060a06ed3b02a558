#include "server/upload_room.h"

namespace syrinx::server {
namespace {

struct Taken {
  explicit Taken(std::shared_ptr<std::atomic<size_t>> room) : left(std::move(room)) {}
  ~Taken() { left->fetch_add(bytes, std::memory_order_relaxed); }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;

  const std::shared_ptr<std::atomic<size_t>> left;
  size_t bytes = 0;
};

}  // namespace

std::shared_ptr<const void> UploadRoom::take(size_t bytes) {
  auto taken = std::make_shared<Taken>(left_);
  size_t left = left_->load(std::memory_order_relaxed);
  do {
    if (left < bytes) return nullptr;
  } while (!left_->compare_exchange_weak(left, left - bytes, std::memory_order_relaxed));
  taken->bytes = bytes;
  return taken;
}

}  // namespace syrinx::server
