// Messages of the Protocol Buffers wire format, for readers of them to be tried with hostile ones.
#pragma once

#include <cstdint>
#include <string>

namespace syrinx::test {

// A message of the wire format, field by field.
struct Message {
  std::string bytes;
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(0x80 | (value & 0x7f));
    bytes += static_cast<char>(value);
  }
  Message& number(int field, uint64_t value) {
    varint(static_cast<uint64_t>(field) << 3);
    varint(value);
    return *this;
  }
  Message& text(int field, const std::string& value) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(value.size());
    bytes += value;
    return *this;
  }
  Message& fixed32(int field, const std::string& four) {
    varint(static_cast<uint64_t>(field) << 3 | 5);
    bytes += four;
    return *this;
  }
  Message& fixed64(int field, const std::string& eight) {
    varint(static_cast<uint64_t>(field) << 3 | 1);
    bytes += eight;
    return *this;
  }
  Message& real(int field, float value) {
    return fixed32(field, {reinterpret_cast<const char*>(&value), sizeof value});
  }
};

}  // namespace syrinx::test
