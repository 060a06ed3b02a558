// Vocabularies of language models: pre-tokenizers, merges and added tokens, beside Hugging Face's library
// (tools/reference/bpe_splits.py).
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <iterator>

#include "base/json.h"
#include "text/tokens/bpe_files.h"

namespace syrinx::text {
namespace {

using Ids = std::vector<int32_t>;
using Pieces = std::vector<std::string_view>;

std::string read(const std::string& name) {
  std::ifstream file(std::string(SYRINX_TEST_DATA) + "/text/" + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Json parsed(const std::string& name) {
  auto json = parse_json(read(name), name);
  EXPECT_TRUE(json.has_value());
  return std::move(*json);
}

Ids ids_of(const Json& list) {
  Ids ids;
  for (const Json& id : *list.array()) ids.push_back(static_cast<int32_t>(*id.whole()));
  return ids;
}

ByteBpe good(Result<ByteBpe> bpe) {
  EXPECT_TRUE(bpe.has_value()) << bpe.error().message;
  return std::move(*bpe);
}
ByteBpe small(const std::string& name) { return good(read_bpe_json(read("bpe_" + name + ".json"), name)); }

void expect_error(const Result<ByteBpe>& bpe, Code code, const std::string& says) {
  ASSERT_FALSE(bpe.has_value()) << says;
  EXPECT_EQ(bpe.error().code, code) << bpe.error().message;
  EXPECT_NE(bpe.error().message.find(says), std::string::npos) << bpe.error().message;
}

// A file of the library with `from` replaced.
Result<ByteBpe> changed(const std::string& name, const std::string& from, const std::string& to) {
  std::string json = read("bpe_" + name + ".json");
  const size_t at = json.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) json.replace(at, from.size(), to);
  return read_bpe_json(json, "file");
}

// The arrays that a GGUF file has for the same vocabulary.
struct Arrays {
  std::vector<std::string> texts;
  std::vector<std::string_view> tokens, merges;
  std::vector<int64_t> types;
  BpeSplit split = BpeSplit::kGpt2;

  explicit Arrays(const std::string& name) {
    const Json file = parsed("bpe_" + name + ".json");
    split = name == "smollm"   ? BpeSplit::kGpt2LoneDigits
            : name == "llama3" ? BpeSplit::kCl100k
            : name == "qwen2"  ? BpeSplit::kCl100kLoneDigits
            : name == "tekken" ? BpeSplit::kCasedWords
                               : BpeSplit::kGpt2;
    const Json& model = *file.find("model");
    const Json::Array& added = *file.find("added_tokens")->array();
    texts.resize(model.find("vocab")->object()->size() + added.size());
    types.assign(texts.size(), 1);
    for (const JsonMember& token : *model.find("vocab")->object())
      texts[static_cast<size_t>(*token.value.whole())] = token.key;
    for (const Json& token : added) {
      const auto id = static_cast<size_t>(*token.find("id")->whole());
      texts[id] = *token.find("content")->string();
      types[id] = *token.find("special")->boolean() ? 3 : 4;
    }
    const size_t count = texts.size();
    for (const Json& pair : *model.find("merges")->array())
      texts.push_back(*pair.array()->front().string() + " " + *pair.array()->back().string());
    tokens.assign(texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(count));
    merges.assign(texts.begin() + static_cast<std::ptrdiff_t>(count), texts.end());
  }
  BpeArrays arrays() const {
    return {tokens, types, merges, split, split == BpeSplit::kCl100k, split == BpeSplit::kCl100kLoneDigits};
  }
};

constexpr const char* kNames[] = {"gpt2", "smollm", "llama3", "qwen2", "tekken"};

TEST(LanguageBpe, EncodesAsTheLibrary) {
  const Json file = parsed("bpe_texts.json");
  const Json::Array& texts = *file.find("texts")->array();
  ASSERT_GT(texts.size(), 400u);
  for (const char* const name : kNames) {
    const ByteBpe bpe = small(name);
    EXPECT_EQ(bpe.size(), 708u);
    const Json::Array& ids = *file.find("tokenizers")->find(name)->find("ids")->array();
    ASSERT_EQ(ids.size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i)
      EXPECT_EQ(*bpe.encode(*texts[i].string()), ids_of(ids[i])) << name << ": " << texts[i].dump();
  }
}

TEST(LanguageBpe, DecodesAsTheLibrary) {
  const Json file = parsed("bpe_texts.json");
  for (const char* const name : kNames) {
    const ByteBpe bpe = small(name);
    for (const Json& row : *file.find("tokenizers")->find(name)->find("decoded")->array())
      EXPECT_EQ(bpe.decode(ids_of(row.array()->front())), *row.array()->back().string()) << name << row.dump();
  }
}

TEST(LanguageBpe, TextMakesNoSpecialTokens) {
  for (const char* const name : kNames) {
    const ByteBpe bpe = small(name);
    EXPECT_EQ(bpe.find_special("<|im_start|>"), 701);
    EXPECT_EQ(bpe.find_special("<tool_call>"), std::nullopt);
    EXPECT_EQ(bpe.find_named("<tool_call>"), 704);
    EXPECT_EQ(bpe.find_named("<|im_start|>"), 701);
    EXPECT_EQ(bpe.find_named("the"), std::nullopt);
    EXPECT_EQ(*bpe.encode("<tool_call>"), Ids{704});
    EXPECT_EQ(bpe.decode(Ids{701, 704, 702}), "<tool_call>");
    const std::string text = "<|im_start|>a<|im_end|><|endoftext|>";
    const Ids ids = *bpe.encode(text);
    for (const int32_t id : ids) EXPECT_FALSE(bpe.is_special(id));
    EXPECT_EQ(bpe.decode(ids), text);
  }
}

TEST(LanguageBpe, ArraysEqualTheJson) {
  const Json file = parsed("bpe_texts.json");
  for (const char* const name : {"smollm", "llama3", "qwen2", "tekken"}) {
    const Arrays arrays(name);
    const ByteBpe bpe = good(make_bpe(arrays.arrays(), name));
    const ByteBpe json = small(name);
    ASSERT_EQ(bpe.size(), json.size());
    for (const Json& text : *file.find("texts")->array()) {
      // GGUF does not tell which added tokens are found in normalized text.
      if (text.string()->find("ngstr") != std::string::npos) continue;
      EXPECT_EQ(*bpe.encode(*text.string()), *json.encode(*text.string())) << name << ": " << text.dump();
    }
    EXPECT_EQ(bpe.find_special("<|im_end|>"), 702);
    EXPECT_EQ(bpe.decode(Ids{702, 706}), "</tool_call>");
  }
}

TEST(LanguageBpe, UnusedTokensAreSilent) {
  Arrays arrays("qwen2");
  arrays.types[704] = 5;
  arrays.types[703] = 2;
  const ByteBpe bpe = good(make_bpe(arrays.arrays(), "file"));
  EXPECT_EQ(bpe.decode(Ids{704, 703}), "");
  EXPECT_EQ(bpe.find_special("<tool"), 703);
  EXPECT_EQ(bpe.decode(*bpe.encode("<tool_call>")), "<tool_call>");
}

TEST(LanguageBpe, DamagedArraysAreRefused) {
  Arrays arrays("smollm");
  arrays.types[3] = 6;
  expect_error(make_bpe(arrays.arrays(), "file"), Code::kUnsupported, "token 3 of 'file' has the type 6");
  arrays.types.pop_back();
  expect_error(make_bpe(arrays.arrays(), "file"), Code::kDataLoss, "708 tokens and 707 types");
  arrays = Arrays("smollm");
  for (const auto& [merge, says] : std::initializer_list<std::pair<const char*, const char*>>{
           {"a", "merge 7 of 'file' is not two tokens"},
           {"a b c", "merge 7 of 'file' is not two tokens"},
           {"a \u4E00", "U+4E00 stands for no byte"},
           {"a ", "merge 7 of 'file' names a token"},
           {"zz q", "merge 7 of 'file' names a token"},
           {"z q", "merge 7 of 'file' names a token"},
       }) {
    Arrays damaged("smollm");
    damaged.merges[7] = merge;
    expect_error(make_bpe(damaged.arrays(), "file"), Code::kDataLoss, says);
  }
  arrays.merges.resize(ByteBpe::kMaxMerges + 1, "a b");
  expect_error(make_bpe(arrays.arrays(), "file"), Code::kLimitExceeded, "has 524289 merges, the limit is 524288");
  arrays.tokens.resize(ByteBpe::kMaxTokens + 1);
  arrays.types.resize(ByteBpe::kMaxTokens + 1);
  expect_error(make_bpe(arrays.arrays(), "file"), Code::kLimitExceeded, "has 524289 tokens, the limit is 524288");
}

TEST(LanguageBpe, UnknownPartsAreRefused) {
  expect_error(changed("llama3", "{1,3}", "{1,2}"), Code::kUnsupported,
               "cuts texts by the expression '(?i:'s|'t|'re|'ve|'m|'ll|'d)|");
  expect_error(changed("llama3", "Isolated", "Removed"), Code::kUnsupported, "something in its pre_tokenizer");
  expect_error(changed("llama3", "\"invert\":false", "\"invert\":true"), Code::kUnsupported, "pre_tokenizer");
  expect_error(changed("llama3", "\"use_regex\":false", "\"use_regex\":true"), Code::kUnsupported, "pre_tokenizer");
  expect_error(changed("smollm", "\"individual_digits\":true", "\"individual_digits\":false"), Code::kUnsupported,
               "pre_tokenizer");
  expect_error(changed("smollm", "\"Digits\"", "\"Punctuation\""), Code::kUnsupported, "pre_tokenizer");
  expect_error(changed("qwen2", "\"NFC\"", "\"NFKC\""), Code::kUnsupported, "something in its normalizer");
  expect_error(changed("qwen2", "\"unk_token\":null", "\"unk_token\":\"a\""), Code::kUnsupported, "unk_token");
  expect_error(changed("qwen2", "\"byte_fallback\":false", "\"byte_fallback\":true"), Code::kUnsupported,
               "byte_fallback");
  expect_error(changed("qwen2", "\"end_of_word_suffix\":null", "\"end_of_word_suffix\":\"x\""), Code::kUnsupported,
               "end_of_word_suffix");
  expect_error(changed("qwen2", "\"content\":\"<tool\",\"single_word\":false,\"lstrip\":false",
                       "\"content\":\"<tool\",\"single_word\":false,\"lstrip\":true"),
               Code::kUnsupported, "something in its added_tokens");
}

TEST(LanguageBpe, DamagedFilesAreRefused) {
  expect_error(changed("qwen2", "\"merges\":[[", "\"merges\":[7,["), Code::kDataLoss, "merge 0 of 'file' is not two");
  expect_error(changed("qwen2", "\"merges\":[[", "\"merges\":[[\"a\"],["), Code::kDataLoss, "merge 0 of 'file'");
  expect_error(changed("qwen2", "\"merges\":[[", "\"merges\":[[\"a\",\"zq\"],["), Code::kDataLoss,
               "merge 0 of 'file' names a token that is not there");
  expect_error(changed("gpt2", "\"merges\":[", "\"merges\":[\"a\","), Code::kDataLoss, "merge 0 of 'file' is not two");
  expect_error(changed("qwen2", "\"merges\":", "\"others\":"), Code::kDataLoss, "it has no list of merges");
  expect_error(changed("smollm", "\"a\":", "\"aaaa\":"), Code::kDataLoss, "no token for the byte 0x61");
  const std::string limit(BpeAdded::kMaxTokenBytes, 'x');
  expect_error(changed("qwen2", "<tool_call>", limit + "x"), Code::kLimitExceeded,
               "the added token 704 of 'file' has 129 bytes, the limit is 128");
  EXPECT_EQ(*good(changed("qwen2", "<tool_call>", limit)).encode(limit), Ids{704});
}

// A ByteLevel alone is Whisper's unless the caller knows that it is a language model's.
TEST(LanguageBpe, CallerTellsTheOrder) {
  std::string json = read("bpe_gpt2.json");
  const size_t begin = json.find("{\"type\":\"Sequence\"");
  const size_t end = json.find(",\"post_processor\"");
  ASSERT_LT(begin, end);
  json.replace(begin, end - begin, R"({"type":"ByteLevel","add_prefix_space":false})");
  const ByteBpe by_merges = good(read_bpe_json_by_merges(json, "file"));
  const ByteBpe by_ids = good(read_bpe_json(json, "file"));
  EXPECT_EQ(*by_merges.encode("<tool_call>"), Ids{704});
  EXPECT_TRUE(by_ids.is_special(704));
  const ByteBpe sequence = small("gpt2");
  const Json file = parsed("bpe_texts.json");
  for (const Json& text : *file.find("texts")->array())
    EXPECT_EQ(*by_merges.encode(*text.string()), *sequence.encode(*text.string())) << text.dump();
}

TEST(LanguageBpe, BytesWithoutTokensArePassedOver) {
  const ByteBpe bpe = small("smollm");
  EXPECT_EQ(bpe.decode(*bpe.encode("a\x04"
                                   "b \xF1 c\xFF")),
            "ab  c");
  EXPECT_EQ(*bpe.encode("\x04\x06"), Ids{});
}

// In O(n log n): by the square of the size they would outlast the limit of a test.
TEST(LanguageBpe, LongRunsEnd) {
  for (const char* const name : kNames) {
    const ByteBpe bpe = small(name);
    for (const std::string_view part :
         {"a", " ", "1", "\n", "<", "'", "the", "\t\n", "a\u0323\u0307", "\u0307\u0323"}) {
      std::string text;
      while (text.size() < size_t{1} << 18) text += part;
      const auto ids = bpe.encode(text);
      ASSERT_TRUE(ids.has_value());
      EXPECT_GT(ids->size(), text.size() / 64);
    }
    EXPECT_EQ(bpe.encode(std::string(ByteBpe::kMaxTextBytes + 1, 'a')).error().code, Code::kLimitExceeded);
  }
}

TEST(BpeSplit, CutsAsItsExpression) {
  EXPECT_EQ(split_bpe("I'LL x12345  y\r\n\r\n z ", BpeSplit::kCl100k),
            (Pieces{"I", "'LL", " x", "123", "45", " ", " y", "\r\n\r\n", " z", " "}));
  EXPECT_EQ(split_bpe("x123  \n  4", BpeSplit::kCl100kLoneDigits), (Pieces{"x", "1", "2", "3", "  \n", " ", " ", "4"}));
  EXPECT_EQ(split_bpe("x12  3 y'S", BpeSplit::kGpt2LoneDigits), (Pieces{"x", "1", "2", "  ", "3", " y", "'", "S"}));
  EXPECT_EQ(split_bpe("x12  3 y'S", BpeSplit::kGpt2), (Pieces{"x", "12", " ", " 3", " y", "'", "S"}));
  EXPECT_EQ(split_bpe("!\n\nx\t?a", BpeSplit::kCl100k), (Pieces{"!\n\n", "x", "\t", "?a"}));
  for (const BpeSplit split :
       {BpeSplit::kGpt2, BpeSplit::kGpt2LoneDigits, BpeSplit::kCl100k, BpeSplit::kCl100kLoneDigits})
    EXPECT_TRUE(split_bpe("", split).empty());
}

TEST(BpeSplit, OtherExpressionsAreUnknown) {
  EXPECT_EQ(find_bpe_expression(""), std::nullopt);
  EXPECT_EQ(find_bpe_expression("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"), std::nullopt);
}

TEST(BpeMerges, PairsAreFoundByBothIds) {
  const std::vector<BpeMerges::Merge> list = {{0, 1, 4}, {2, 0, 5}, {0, 3, 6}, {0, 1, 7}, {6, 6, 8}};
  const BpeMerges merges(list, 9);
  const auto found = [&](int32_t left, int32_t right) {
    const BpeMerges::Place place = merges.find(left, right);
    return std::pair(place.rank, place.whole);
  };
  EXPECT_EQ(found(0, 1), std::pair(3, 7));  // listed twice: the last one, as in the library
  EXPECT_EQ(found(0, 3), std::pair(2, 6));
  EXPECT_EQ(found(2, 0), std::pair(1, 5));
  EXPECT_EQ(found(6, 6), std::pair(4, 8));
  for (const auto& [left, right] : {std::pair(0, 0), {0, 2}, {0, 4}, {1, 0}, {8, 8}})
    EXPECT_EQ(found(left, right).first, -1);
}

TEST(BpeAdded, LeftmostThenLongest) {
  const BpeAdded added({{"abc", 1}, {"ab", 2}, {"", 3}, {"bcdef", 4}, {"ab", 5}, {"\xFF", 6}});
  const auto found = [&](std::string_view text, size_t offset) {
    const auto match = added.find(text, offset);
    return match ? std::array<size_t, 3>{match->begin, match->end, static_cast<size_t>(match->id)}
                 : std::array<size_t, 3>{};
  };
  EXPECT_EQ(found("xabcdef", 0), (std::array<size_t, 3>{1, 4, 1}));
  EXPECT_EQ(found("xabcdef", 2), (std::array<size_t, 3>{2, 7, 4}));
  EXPECT_EQ(found("aab", 0), (std::array<size_t, 3>{1, 3, 2}));
  EXPECT_EQ(found("\xFF", 0), (std::array<size_t, 3>{0, 1, 6}));
  EXPECT_EQ(found("a", 0), (std::array<size_t, 3>{}));
  EXPECT_FALSE(BpeAdded().find("a", 0));
}

}  // namespace
}  // namespace syrinx::text
