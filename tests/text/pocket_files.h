// The tokenizers and reference texts of tests/data/pocket_tts (docs/pocket_tts.md says how they were made).
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

}  // namespace syrinx::test
