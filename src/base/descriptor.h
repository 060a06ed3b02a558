// A descriptor of the system's, closed with its owner.
#pragma once

#include <unistd.h>

#include <string>
#include <utility>

#include "base/result.h"

namespace syrinx {

class Descriptor {
 public:
  // A file to be read; nobody who would write is waited for.  kNotFound, kIo.
  static Result<Descriptor> open(const std::string& path);

  explicit Descriptor(int opened) : value_(opened) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int value() const { return value_; }

 private:
  int value_ = -1;
};

}  // namespace syrinx
