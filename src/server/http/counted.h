// Counts its own objects while they live.
#pragma once

#include <atomic>
#include <cstddef>

namespace syrinx::server {

class Counted {
 public:
  explicit Counted(std::atomic<size_t>& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<size_t>& count_;
};

}  // namespace syrinx::server
