// How many bytes all uploads may hold together, taken as they arrive and kept to the end of the work on them.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace syrinx::server {

class UploadRoom {
 public:
  // Limits of all uploads together, and of those of one address.
  UploadRoom(size_t bytes, size_t bytes_of_address);

  // The share of one upload, for as long as this lives, which may be longer than the room.
  class Hold;
  std::shared_ptr<Hold> begin(const std::string& address);

  size_t held() const;  // bytes, by all of them; any thread, as all of it

 private:
  struct Shared;
  const std::shared_ptr<Shared> shared_;
};

class UploadRoom::Hold {
 public:
  Hold(std::shared_ptr<Shared> shared, std::string address);
  ~Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  bool fits(size_t bytes) const;  // so many in all, now
  // Holds so many in all, or false: there is no room for them.
  bool grow_to(size_t bytes);

 private:
  const std::shared_ptr<Shared> shared_;
  const std::string address_;
  size_t bytes_ = 0;  // by Shared::mutex
};

}  // namespace syrinx::server
