#include "text/tokens/byte_bpe.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/json.h"
#include "text/compression_ratio.h"
#include "text/tokens/bpe_files.h"

namespace syrinx::text {
namespace {

using Ids = std::vector<int32_t>;

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
std::string small(const std::string& name) { return read(std::string(SYRINX_TEST_DATA) + "/whisper/" + name); }

Json texts() {
  auto parsed = parse_json(small("texts.json"), "texts.json");
  EXPECT_TRUE(parsed.has_value());
  return std::move(*parsed);
}

Ids ids_of(const Json& row, const char* key) {
  Ids ids;
  for (const Json& id : *row.find(key)->array()) ids.push_back(static_cast<int32_t>(*id.whole()));
  return ids;
}

ByteBpe good(Result<ByteBpe> bpe) {
  EXPECT_TRUE(bpe.has_value()) << bpe.error().message;
  return std::move(*bpe);
}

void expect_error(const Result<ByteBpe>& bpe, Code code, const std::string& says) {
  ASSERT_FALSE(bpe.has_value()) << says;
  EXPECT_EQ(bpe.error().code, code) << bpe.error().message;
  EXPECT_NE(bpe.error().message.find(says), std::string::npos) << bpe.error().message;
}

TEST(ByteBpe, EncodesAndDecodesAsTheMaker) {
  const ByteBpe json = good(read_bpe_json(small("tokenizer.json"), "tokenizer.json"));
  const ByteBpe lines = good(read_vocabulary_txt(small("vocabulary.txt"), "vocabulary.txt"));
  const Json file = texts();
  ASSERT_GT(file.find("texts")->array()->size(), 300u);
  for (const Json& row : *file.find("texts")->array()) {
    const std::string& text = *row.find("text")->string();
    SCOPED_TRACE(text);
    const auto ids = json.encode(text);
    ASSERT_TRUE(ids.has_value());
    EXPECT_EQ(*ids, ids_of(row, "ids"));
    EXPECT_EQ(*lines.encode(text), *ids);
    EXPECT_EQ(json.decode(*ids), text);
  }
  for (const Json& row : *file.find("broken")->array())
    EXPECT_EQ(json.decode(ids_of(row, "ids")), *row.find("decoded")->string()) << row.dump();
}

TEST(ByteBpe, SpecialsHaveNamesAndNoBytes) {
  const ByteBpe json = good(read_bpe_json(small("tokenizer.json"), "tokenizer.json"));
  const ByteBpe lines = good(read_vocabulary_txt(small("vocabulary.txt"), "vocabulary.txt"));
  EXPECT_EQ(json.size(), 513u);
  EXPECT_EQ(lines.size(), 2014u);
  EXPECT_EQ(json.find_special("<|endoftext|>"), 500);
  EXPECT_EQ(lines.find_special("<|30.00|>"), 2013);
  EXPECT_EQ(json.find_special("the"), std::nullopt);
  EXPECT_TRUE(json.is_special(512));
  EXPECT_FALSE(json.is_special(513));
  EXPECT_FALSE(json.is_special(-1));
  EXPECT_EQ(json.decode(Ids{500, 0, 501, -7, 99999}), json.decode(Ids{0}));
}

TEST(ByteBpe, CutsAsGpt2) {
  using Pieces = std::vector<std::string_view>;
  EXPECT_EQ(split_gpt2("I'll  go, x2!\n"), (Pieces{"I", "'ll", " ", " go", ",", " x", "2", "!", "\n"}));
  EXPECT_EQ(split_gpt2(" \t a"), (Pieces{" \t", " a"}));
  EXPECT_EQ(split_gpt2("a\tb"), (Pieces{"a", "\t", "b"}));
}

// A piece of a million bytes takes no quadratic time; a text over the limit is refused.
TEST(ByteBpe, LongPiecesAndLimits) {
  const ByteBpe bpe = good(read_bpe_json(small("tokenizer.json"), "tokenizer.json"));
  std::string text;
  while (text.size() < 1'000'000) text += "thethere";
  const auto ids = bpe.encode(text);
  ASSERT_TRUE(ids.has_value());
  EXPECT_LT(ids->size(), text.size() * 2 / 3);
  EXPECT_EQ(bpe.decode(*ids), text);
  EXPECT_EQ(bpe.encode(std::string(ByteBpe::kMaxTextBytes + 1, 'a')).error().code, Code::kLimitExceeded);
}

TEST(ByteBpe, RefusesOtherVocabularies) {
  const std::string json = small("tokenizer.json");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = json;
    changed.replace(changed.find(from), from.size(), to);
    return read_bpe_json(changed, "file");
  };
  expect_error(with("\"BPE\"", "\"Unigram\""), Code::kUnsupported, "not of the type BPE");
  expect_error(with("\"normalizer\": null", "\"normalizer\": {}"), Code::kUnsupported, "something in its normalizer");
  expect_error(with("\"add_prefix_space\": false", "\"add_prefix_space\": true"), Code::kUnsupported, "pre_tokenizer");
  expect_error(with("\"unk_token\": null", "\"unk_token\": \"x\""), Code::kUnsupported, "unk_token");
  expect_error(with("\"a\": ", "\"q\u4E00\": "), Code::kDataLoss, "U+4E00 stands for no byte");
  expect_error(with("\"a\": ", "\"zzz\": "), Code::kDataLoss, "no token for the byte 0x61");
  expect_error(with("\"id\": 500", "\"id\": -1"), Code::kDataLoss, "a token has no id");
  expect_error(with("\"id\": 500", "\"id\": 9000000"), Code::kLimitExceeded, "has a token of the id 9000000");
  expect_error(read_bpe_json("{}", "file"), Code::kDataLoss, "it has no model");
  expect_error(read_vocabulary_txt("a\nb\n", "file"), Code::kDataLoss, "no token for the byte 0x00");
  expect_error(read_vocabulary_txt("a b\n", "file"), Code::kDataLoss, "U+0020 stands for no byte");
  expect_error(read_vocabulary_txt(std::string(kMaxBpeFileBytes + 1, '\n'), "file"), Code::kLimitExceeded, "bytes");
}

// zlib's sizes as Python's zlib gives them.
TEST(CompressionRatio, IsThatOfZlib) {
  EXPECT_EQ(compression_ratio(""), 0.0);
  EXPECT_DOUBLE_EQ(compression_ratio("a"), 1.0 / 9);
  std::string loop;
  for (int i = 0; i < 40; ++i) loop += " you know";
  EXPECT_DOUBLE_EQ(compression_ratio(loop), 360.0 / 22);
}

}  // namespace
}  // namespace syrinx::text
