#include "server/host/upload_room.h"

#include <algorithm>
#include <utility>

namespace syrinx::server {

struct UploadRoom::Shared {
  // For an upload of that address that holds so much already.
  bool has_room(const std::string& address, size_t held, size_t bytes) const {
    const auto its = by_address.find(address);
    const size_t used = its == by_address.end() ? 0 : its->second;
    return bytes <= held || (bytes - held <= limit - all && bytes - held <= limit_of_address - used);
  }

  const size_t limit, limit_of_address;
  mutable std::mutex mutex;
  size_t all = 0;                                         // by mutex
  std::map<std::string, size_t, std::less<>> by_address;  // by mutex
};

UploadRoom::UploadRoom(size_t bytes, size_t bytes_of_address)
    : shared_(new Shared{.limit = bytes, .limit_of_address = bytes_of_address, .mutex = {}, .by_address = {}}) {}

std::shared_ptr<UploadRoom::Hold> UploadRoom::begin(const std::string& address) {
  return std::make_shared<Hold>(shared_, address);
}

size_t UploadRoom::held() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->all;
}

UploadRoom::Hold::Hold(std::shared_ptr<Shared> shared, std::string address)
    : shared_(std::move(shared)), address_(std::move(address)) {}

UploadRoom::Hold::~Hold() {
  const std::lock_guard lock(shared_->mutex);
  if (bytes_ == 0) return;
  shared_->all -= bytes_;
  const auto its = shared_->by_address.find(address_);
  its->second -= bytes_;
  if (its->second == 0) shared_->by_address.erase(its);
}

bool UploadRoom::Hold::fits(size_t bytes) const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->has_room(address_, bytes_, bytes);
}

bool UploadRoom::Hold::grow_to(size_t bytes) {
  const std::lock_guard lock(shared_->mutex);
  if (!shared_->has_room(address_, bytes_, bytes)) return false;
  if (bytes <= bytes_) return true;
  shared_->by_address[address_] += bytes - bytes_;
  shared_->all += bytes - bytes_;
  bytes_ = bytes;
  return true;
}

}  // namespace syrinx::server
