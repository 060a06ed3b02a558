#include "text/tokens/character_map.h"

#include <gtest/gtest.h>

#include "text/tokens/unigram_tokenizer.h"

namespace syrinx::text {
namespace {

std::string u32(uint32_t value) { return {reinterpret_cast<const char*>(&value), sizeof(value)}; }
// The map's bytes: units of the index, then the replacements.
std::string map_bytes(const std::vector<uint32_t>& units, const std::string& replacements) {
  std::string bytes = u32(static_cast<uint32_t>(units.size() * 4));
  for (const uint32_t unit : units) bytes += u32(unit);
  return bytes + replacements;
}
// An index of one key, the byte 'a': the root's children begin at 0, so 'a' stands at 97 and its value at 98 (97 ^ 3 is
// 98: the offset is 3).
std::vector<uint32_t> one_key(uint32_t value, char key = 'a') {
  std::vector<uint32_t> units(128, 0x80000000u);
  units[0] = 0;
  units[static_cast<size_t>(key)] = 3u << 10 | 1u << 8 | static_cast<uint8_t>(key);
  units[static_cast<size_t>(key) ^ 3u] = 0x80000000u | value;
  return units;
}
std::string zero_ended(const std::string& text) { return text + '\0'; }

void expect_error(const std::string& bytes, Code code, const std::string& says) {
  const auto map = CharacterMap::parse(bytes, "file");
  ASSERT_FALSE(map.has_value());
  EXPECT_EQ(map.error().code, code);
  EXPECT_NE(map.error().message.find(says), std::string::npos) << map.error().message;
}

TEST(CharacterMap, ReplacesTheKey) {
  const auto map = CharacterMap::parse(map_bytes(one_key(0), zero_ended("ä")), "file");
  ASSERT_TRUE(map.has_value()) << map.error().message;
  EXPECT_EQ(map->longest("abc").size, 1u);
  EXPECT_EQ(map->longest("abc").replacement, "ä");
  EXPECT_EQ(map->longest("bca").size, 0u);
  EXPECT_EQ(map->longest("").size, 0u);
  EXPECT_EQ(map->longest(std::string(1, '\0')).size, 0u);
  EXPECT_EQ(map->longest("ä").size, 0u);  // beyond the index
}

TEST(CharacterMap, NoMapChangesNothing) {
  EXPECT_EQ(CharacterMap().longest("a").size, 0u);
  EXPECT_EQ(CharacterMap::parse("", "file")->longest("a").size, 0u);
}

TEST(CharacterMap, ADamagedIndexCutsNoCharacterAndLeavesNoBounds) {
  // Into the middle of the replacement, and behind it.
  EXPECT_EQ(CharacterMap::parse(map_bytes(one_key(1), zero_ended("ä")), "file")->longest("a").size, 0u);
  EXPECT_EQ(CharacterMap::parse(map_bytes(one_key(99), zero_ended("ä")), "file")->longest("a").size, 0u);
  // A child, and a value, far outside.
  std::vector<uint32_t> far = one_key(0);
  far[97] = 0x1FFFFFu << 10 | 1u << 9 | 1u << 8 | 97;
  EXPECT_EQ(CharacterMap::parse(map_bytes(far, zero_ended("x")), "file")->longest("aa").size, 0u);
  // A node that is its own child, with a value each time: the walk ends at the longest key.
  std::vector<uint32_t> loop(256, 0x80000000u);
  loop[0] = 0;
  loop[97] = 97u << 10 | 1u << 8 | 97;
  const auto looping = CharacterMap::parse(map_bytes(loop, zero_ended("x")), "file");
  EXPECT_EQ(looping->longest(std::string(1000, 'a')).size, CharacterMap::kMaxKeyBytes);
  // A key that is the first byte of a longer character.
  std::vector<uint32_t> half(256, 0x80000000u);
  half[0] = 0;
  half[0xC3] = 3u << 10 | 1u << 8 | 0xC3;
  half[0xC0] = 0x80000000u;
  EXPECT_EQ(CharacterMap::parse(map_bytes(half, zero_ended("x")), "file")->longest("é").size, 0u);
}

TEST(CharacterMap, RefusesDamagedMaps) {
  expect_error("abc", Code::kDataLoss, "damaged or truncated");
  expect_error(u32(400) + "abc", Code::kDataLoss, "damaged or truncated");
  expect_error(u32(3) + "abc" + zero_ended("x"), Code::kDataLoss, "damaged or truncated");
  expect_error(u32(0) + zero_ended("x"), Code::kDataLoss, "damaged or truncated");
  expect_error(map_bytes(one_key(0), ""), Code::kDataLoss, "replacements");
  expect_error(map_bytes(one_key(0), "x"), Code::kDataLoss, "replacements");
  expect_error(map_bytes(one_key(0), zero_ended("\xff")), Code::kDataLoss, "replacements");
}

TEST(CharacterMap, KeepsItsLimits) {
  expect_error(std::string(CharacterMap::kMaxBytes + 1, 'x'), Code::kLimitExceeded, "bytes, the limit is 4194304");
  expect_error(map_bytes(one_key(0), zero_ended(std::string(257, 'x'))), Code::kLimitExceeded, "has 257 bytes");
  EXPECT_TRUE(CharacterMap::parse(map_bytes(one_key(0), zero_ended(std::string(256, 'x'))), "file").has_value());
}

TEST(CharacterMap, ATextThatGrowsTooMuchIsAnError) {
  UnigramModel model;
  model.pieces = {{.text = "<unk>", .kind = Piece::kUnknown, .matched = false}, {.text = "x"}};
  model.map = *CharacterMap::parse(map_bytes(one_key(0), zero_ended(std::string(256, 'x'))), "file");
  const auto tokenizer = UnigramTokenizer::make(model, "file");
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->encode("a")->size(), 257u);  // with the space before it, which is unknown
  const auto grown = tokenizer->encode(std::string(UnigramTokenizer::kMaxTextBytes / 32, 'a'));
  ASSERT_FALSE(grown.has_value());
  EXPECT_EQ(grown.error().code, Code::kLimitExceeded);
  EXPECT_NE(grown.error().message.find("grows beyond"), std::string::npos);
}

TEST(UnigramTokenizer, KeepsTheLimitOfPieces) {
  UnigramModel model;
  model.pieces.resize(UnigramTokenizer::kMaxPieces + 1);
  const auto tokenizer = UnigramTokenizer::make(std::move(model), "file");
  ASSERT_FALSE(tokenizer.has_value());
  EXPECT_EQ(tokenizer.error().code, Code::kLimitExceeded);
}

}  // namespace
}  // namespace syrinx::text
