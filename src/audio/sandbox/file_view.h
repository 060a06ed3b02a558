// A file behind a host, with a block of it at hand.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "audio/sandbox/decode_host.h"

namespace syrinx {

class FileView {
 public:
  FileView(DecodeHost& host, uint64_t size) : host_(host), size_(size) {}

  uint64_t size() const { return size_; }
  // Zeros where the host is gone; what decides by them is told to nobody.
  uint8_t byte(uint64_t at) {
    if (at - begin_ >= held_) fetch(at);
    return std::to_integer<uint8_t>(block_[static_cast<size_t>(at - begin_)]);
  }
  // The highest byte first; all of them lie in the file.
  uint64_t number(uint64_t at, uint64_t bytes) {
    uint64_t value = 0;
    for (uint64_t i = 0; i < bytes; ++i) value = value << 8 | byte(at + i);
    return value;
  }
  uint64_t little_endian(uint64_t at, uint64_t bytes) {
    uint64_t value = 0;
    for (uint64_t i = bytes; i-- > 0;) value = value << 8 | byte(at + i);
    return value;
  }
  bool has(uint64_t at, uint64_t bytes) const { return at <= size_ && bytes <= size_ - at; }

 private:
  void fetch(uint64_t at) {
    held_ = std::min<uint64_t>(block_.size(), size_ - at);
    begin_ = at;
    if (!host_.read(at, std::span(block_).first(static_cast<size_t>(held_)))) block_.fill(std::byte{0});
  }

  DecodeHost& host_;
  const uint64_t size_;
  std::array<std::byte, 4096> block_{};
  uint64_t begin_ = 0, held_ = 0;
};

}  // namespace syrinx
