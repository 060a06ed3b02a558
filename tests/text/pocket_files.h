// The tokenizers and reference texts of tests/data/pocket_tts (docs/pocket_tts.md says how they were made), and
// messages of the Protocol Buffers wire format for hostile ones.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"

namespace syrinx::test {

inline std::string read_pocket(const std::string& name) {
  std::ifstream file(std::string(SYRINX_TEST_DATA) + "/pocket_tts/" + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

inline Json pocket_texts() {
  auto parsed = parse_json(read_pocket("text.json"), "text.json");
  EXPECT_TRUE(parsed.has_value());
  return std::move(*parsed);
}

inline const std::string& text_of(const Json& value, const char* key) { return *value.find(key)->string(); }

inline std::vector<int32_t> ids_of(const Json& value) {
  std::vector<int32_t> ids;
  for (const Json& id : *value.find("ids")->array()) ids.push_back(static_cast<int32_t>(*id.whole()));
  return ids;
}

// A message, field by field.
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
  Message& real(int field, float value) {
    varint(static_cast<uint64_t>(field) << 3 | 5);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
};

}  // namespace syrinx::test
