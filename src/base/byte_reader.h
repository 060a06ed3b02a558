// A little-endian cursor over unchecked bytes.  A read beyond the end gives zero or an empty span and
// sets failed(), which stays set: parse a whole record, then ask once.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace syrinx {

static_assert(std::endian::native == std::endian::little, "file readers assume a little-endian machine");

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool failed() const { return failed_; }
  bool at_end() const { return position_ == bytes_.size(); }
  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }

  std::span<const std::byte> take(uint64_t size) {
    if (failed_ || size > remaining()) {
      failed_ = true;
      return {};
    }
    const auto taken = bytes_.subspan(position_, static_cast<size_t>(size));
    position_ += static_cast<size_t>(size);
    return taken;
  }
  // The bytes up to `end`, which is consumed and not returned.
  std::string_view take_until(char end) {
    const auto* const begin = reinterpret_cast<const char*>(bytes_.data()) + position_;
    const void* const found = failed_ || remaining() == 0 ? nullptr : std::memchr(begin, end, remaining());
    if (found == nullptr) {
      failed_ = true;
      return {};
    }
    const size_t size = static_cast<size_t>(static_cast<const char*>(found) - begin);
    position_ += size + 1;
    return {begin, size};
  }
  std::string_view text(uint64_t size) {
    const auto taken = take(size);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  template <class T>
  T number() {
    T value{};
    const auto taken = take(sizeof(T));
    if (!taken.empty()) std::memcpy(&value, taken.data(), sizeof(T));
    return value;
  }
  uint8_t u8() { return number<uint8_t>(); }
  uint16_t u16() { return number<uint16_t>(); }
  uint32_t u32() { return number<uint32_t>(); }
  uint64_t u64() { return number<uint64_t>(); }

  // Protocol Buffers' base-128 number of at most ten bytes.
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      const uint64_t byte = u8();
      if (shift == 63 && byte > 1) failed_ = true;
      if (failed_) return 0;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    failed_ = true;
    return 0;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
  bool failed_ = false;
};

}  // namespace syrinx
