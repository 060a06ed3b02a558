#include "tensor/safetensors_shards.h"

#include <gtest/gtest.h>

#include "temp_folder.h"
#include "tensor/content_key.h"
#include "tensor/safetensors.h"

namespace syrinx {
namespace {

constexpr const char* kFirst = "model-00001-of-00002.safetensors";
constexpr const char* kSecond = "model-00002-of-00002.safetensors";

std::string shard(const std::vector<std::pair<std::string, float>>& tensors) {
  std::vector<TensorRef> refs;
  for (const auto& [name, value] : tensors)
    refs.push_back({.name = name, .dtype = DType::kF32, .dims = {1}, .bytes = std::as_bytes(std::span(&value, 1))});
  return write_safetensors(refs);
}

std::string index(const std::vector<std::pair<std::string, std::string>>& places) {
  std::string map;
  for (const auto& [tensor, file] : places) map += fmt::format("{}\"{}\":\"{}\"", map.empty() ? "" : ",", tensor, file);
  return "{\"metadata\":{\"total_size\":8},\"weight_map\":{" + map + "}}";
}

class SafetensorsShardsTest : public testing::Test {
 protected:
  void SetUp() override {
    write_text(folder_.file(kFirst), shard({{"c", 3}, {"a", 1}}));
    write_text(folder_.file(kSecond), shard({{"b", 2}}));
  }
  Result<SafetensorsShards> open(const std::string& text) {
    write_text(path_, text);
    return open_safetensors_shards(path_);
  }
  Error fault(const std::string& text) {
    const auto opened = open(text);
    EXPECT_FALSE(opened.has_value()) << text;
    return opened ? Error{} : opened.error();
  }

  const TempFolder folder_;
  const std::string path_ = folder_.file("model.safetensors.index.json");
};

TEST_F(SafetensorsShardsTest, ReadsEachTensorFromItsFile) {
  EXPECT_TRUE(is_safetensors_index(path_));
  EXPECT_FALSE(is_safetensors_index(folder_.file(kFirst)));
  const auto shards = open(index({{"a", kFirst}, {"b", kSecond}, {"c", kFirst}}));
  ASSERT_TRUE(shards.has_value()) << shards.error().message;
  ASSERT_EQ(shards->files.size(), 2u);
  ASSERT_EQ(shards->tensors.size(), 3u);
  for (const TensorRef& tensor : shards->tensors)
    EXPECT_EQ(to_f32(tensor.bytes, tensor.dtype).front(), static_cast<float>(tensor.name[0] - 'a' + 1)) << tensor.name;
}

TEST_F(SafetensorsShardsTest, NamesTheFileThatIsMissing) {
  const Error missing = fault(index({{"a", kFirst}, {"c", kFirst}, {"b", "model-00003-of-00003.safetensors"}}));
  EXPECT_EQ(missing.code, Code::kNotFound);
  EXPECT_NE(missing.message.find("model-00003-of-00003.safetensors' is missing"), std::string::npos) << missing.message;
}

TEST_F(SafetensorsShardsTest, RefusesTensorsElsewhere) {
  // One that is in another file than the index says, one that the index does not know, one that no file has.
  EXPECT_NE(fault(index({{"a", kFirst}, {"b", kFirst}, {"c", kSecond}})).message.find("'c'"), std::string::npos);
  EXPECT_NE(fault(index({{"a", kFirst}, {"b", kSecond}})).message.find("'c'"), std::string::npos);
  const Error none = fault(index({{"a", kFirst}, {"b", kSecond}, {"c", kFirst}, {"d", kSecond}}));
  EXPECT_EQ(none.code, Code::kDataLoss);
  EXPECT_NE(none.message.find("places 4 tensors, but its files hold 3"), std::string::npos) << none.message;
}

TEST_F(SafetensorsShardsTest, StaysInItsFolder) {
  for (const char* const name : {"../x.safetensors", "/x.safetensors", "a/x.safetensors", "a\\\\x.safetensors",
                                 "x\\u0000.safetensors", ".safetensors", "x.bin", "", "."})
    EXPECT_EQ(fault(index({{"a", name}})).code, Code::kDataLoss) << name;
  EXPECT_EQ(fault("{\"weight_map\":{\"a\":1}}").code, Code::kDataLoss);
  EXPECT_EQ(fault("{\"weight_map\":{}}").code, Code::kDataLoss);
  EXPECT_EQ(fault("{}").code, Code::kDataLoss);
  EXPECT_EQ(fault("[").code, Code::kDataLoss);
  std::vector<std::pair<std::string, std::string>> many;
  for (size_t i = 0; i <= kMaxSafetensorsShards; ++i)
    many.emplace_back(fmt::format("t{}", i), fmt::format("{}.safetensors", i));
  EXPECT_EQ(fault(index(many)).code, Code::kLimitExceeded);
  EXPECT_EQ(open_safetensors_shards(folder_.file("none.safetensors.index.json")).error().code, Code::kNotFound);
}

TEST_F(SafetensorsShardsTest, TheirKeyKnowsEachOfThem) {
  const auto shards = open(index({{"a", kFirst}, {"b", kSecond}, {"c", kFirst}}));
  ASSERT_TRUE(shards.has_value()) << shards.error().message;
  const std::string both = content_key(std::span(shards->files), "");
  EXPECT_EQ(content_key(std::span(shards->files).first(1), ""), content_key(shards->files[0], ""));
  write_text(folder_.file(kSecond), shard({{"b", 5}}));
  const auto changed = open_safetensors_shards(path_);
  ASSERT_TRUE(changed.has_value()) << changed.error().message;
  EXPECT_NE(content_key(std::span(changed->files), ""), both);
  EXPECT_EQ(content_key(std::span(changed->files), "").size(), 64u);
}

}  // namespace
}  // namespace syrinx
