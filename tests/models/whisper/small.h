// The small vocabulary and the references of tests/data/whisper (docs/whisper.md says how they were made).
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/json.h"
#include "models/whisper/tokens.h"
#include "text/tokens/bpe_files.h"

namespace syrinx::test {

inline std::string read_small(const std::string& name) {
  std::ifstream file(std::string(SYRINX_TEST_DATA) + "/whisper/" + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline const text::ByteBpe& small_bpe() {
  static const auto kBpe = text::read_bpe_json(read_small("tokenizer.json"), "tokenizer.json");
  EXPECT_TRUE(kBpe.has_value());
  return *kBpe;
}

inline const whisper::Tokens& small_tokens() {
  static const auto kTokens = whisper::find_tokens(small_bpe(), 2014, "tokenizer.json");
  EXPECT_TRUE(kTokens.has_value());
  return *kTokens;
}

inline const Json& small_reference() {
  static const auto kFile = parse_json(read_small("rules.json"), "rules.json");
  EXPECT_TRUE(kFile.has_value());
  return *kFile;
}

inline double number(const Json& value) {
  return value.real() != nullptr ? *value.real() : static_cast<double>(*value.whole());
}
inline double number(const Json& row, const char* key) { return number(*row.find(key)); }
inline size_t whole(const Json& row, const char* key) { return static_cast<size_t>(*row.find(key)->whole()); }
inline bool truth(const Json& row, const char* key) { return *row.find(key)->boolean(); }
inline const std::string& string_of(const Json& row, const char* key) { return *row.find(key)->string(); }
inline const Json::Array& list(const Json& row, const char* key) { return *row.find(key)->array(); }

inline std::vector<int32_t> ids_of(const Json& value) {
  std::vector<int32_t> ids;
  for (const Json& id : *value.array()) ids.push_back(static_cast<int32_t>(*id.whole()));
  return ids;
}
inline std::vector<int32_t> ids_of(const Json& row, const char* key) { return ids_of(*row.find(key)); }

// The numbers of tools/checkpoints/draws.py.
class Draws {
 public:
  explicit Draws(uint32_t seed) : state_(seed) {}
  std::vector<float> floats(size_t count, double low = 0, double high = 1) {
    std::vector<float> values(count);
    for (float& value : values) {
      state_ = state_ * 1664525u + 1013904223u;
      value = static_cast<float>(low + (high - low) * (static_cast<double>(state_ >> 8) / 16777216.0));
    }
    return values;
  }

 private:
  uint32_t state_;
};

}  // namespace syrinx::test
