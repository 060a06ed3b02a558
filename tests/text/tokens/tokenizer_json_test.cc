#include "text/tokens/tokenizer_json.h"

#include "tests/text/pocket_files.h"
#include "text/unicode.h"

namespace syrinx::text {
namespace {

using Ids = std::vector<int32_t>;

UnigramTokenizer read_good(const std::string& json) {
  auto tokenizer = read_tokenizer_json(json, "file");
  EXPECT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  return std::move(*tokenizer);
}

// A small file, with parts put in place of others.
struct File {
  std::string normalizer =
      R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},"content":"▁"}]})";
  std::string decoder =
      R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]})";
  std::string type = R"("Unigram")";
  std::string vocab = R"([["<unk>",0],["▁",-2.5],["a",-3],["<s>",0.0]])";
  std::string unk = "0";
  std::string fallback = "false";
  std::string added = "[]";
  std::string more;  // members
  std::string text() const {
    return R"({"added_tokens":)" + added + R"(,"normalizer":)" + normalizer + R"(,"decoder":)" + decoder + more +
           R"(,"model":{"type":)" + type + R"(,"unk_id":)" + unk + R"(,"byte_fallback":)" + fallback + R"(,"vocab":)" +
           vocab + "}}";
  }
};

void expect_error(const std::string& json, Code code, const std::string& says) {
  const auto tokenizer = read_tokenizer_json(json, "file");
  ASSERT_FALSE(tokenizer.has_value()) << json;
  EXPECT_EQ(tokenizer.error().code, code) << tokenizer.error().message;
  EXPECT_NE(tokenizer.error().message.find(says), std::string::npos) << tokenizer.error().message;
}

TEST(TokenizerJson, EncodesAndDecodesAsTheMaker) {
  const UnigramTokenizer tokenizer = read_good(test::read_pocket("tokenizer.json"));
  EXPECT_EQ(tokenizer.size(), 400u);
  const Json texts = test::pocket_texts();
  size_t others = 0;
  for (const Json& item : *texts.find("tokenize")->array()) {
    const std::string& text = test::text_of(item, "text");
    SCOPED_TRACE(text);
    others += item.find("json") != nullptr ? 1 : 0;
    const Json& expected = *item.find(item.find("json") != nullptr ? "json" : "model");
    const auto ids = tokenizer.encode(text);
    ASSERT_TRUE(ids.has_value()) << ids.error().message;
    EXPECT_EQ(*ids, test::ids_of(expected));
    EXPECT_EQ(tokenizer.decode(*ids), test::text_of(expected, "decoded"));
  }
  EXPECT_EQ(others, 7u);  // texts that spell a piece
}

TEST(TokenizerJson, ARunOfBytesIsWholeOrReplaced) {
  const UnigramTokenizer tokenizer = read_good(test::read_pocket("tokenizer.json"));
  EXPECT_EQ(tokenizer.decode(Ids{4 + 0xC3, 4 + 0xA9}), "é");
  EXPECT_EQ(tokenizer.decode(Ids{4 + 0xE4, 4 + 0x41}), "\uFFFD\uFFFD");
}

TEST(TokenizerJson, ReadsTheSmallestFile) {
  const UnigramTokenizer tokenizer = read_good(File().text());
  EXPECT_EQ(*tokenizer.encode("a aa"), (Ids{1, 2, 1, 2, 2}));
  EXPECT_EQ(tokenizer.decode(Ids{1, 2, 1, 2, 2}), "a aa");
  EXPECT_EQ(*tokenizer.encode("<s>"), (Ids{1, 3}));
  EXPECT_EQ(tokenizer.decode(Ids{2, 0}), "a<unk>");
  File bare;
  bare.normalizer = "null";
  bare.decoder = R"({"type":"Fuse"})";
  EXPECT_EQ(*read_good(bare.text()).encode("aa"), (Ids{2, 2}));
}

TEST(TokenizerJson, SpecialAddedTokensAreSilentAndNotSpelt) {
  File file;
  file.added =
      R"([{"id":3,"content":"<s>","special":true},{"id":0,"content":"<unk>","special":true},{"id":2,"content":"a"}])";
  const UnigramTokenizer tokenizer = read_good(file.text());
  EXPECT_EQ(*tokenizer.encode("<s>a"), (Ids{1, 0, 2}));
  EXPECT_EQ(tokenizer.decode(Ids{3, 1, 2, 0}), "a");
}

// A character map is applied to whole graphemes, otherwise than by sentencepiece; the ids are the library's.
TEST(TokenizerJson, AppliesAPrecompiledMapAsTheLibrary) {
  const UnigramTokenizer tokenizer = read_good(test::read_pocket("mapped.json"));
  const auto texts = parse_json(test::read_pocket("mapped_ids.json"), "mapped_ids.json");
  ASSERT_TRUE(texts.has_value());
  ASSERT_EQ(texts->array()->size(), 26u);
  for (const Json& item : *texts->array()) {
    SCOPED_TRACE(test::text_of(item, "text"));
    const auto ids = tokenizer.encode(test::text_of(item, "text"));
    ASSERT_TRUE(ids.has_value()) << ids.error().message;
    EXPECT_EQ(*ids, test::ids_of(item));
    EXPECT_EQ(tokenizer.decode(*ids), test::text_of(item, "decoded"));
  }
}

TEST(TokenizerJson, ReadsAMapThatIsNoneAndRefusesDamage) {
  const std::string prepend = R"({"type":"Prepend","prepend":"▁"},)";
  const std::string replace = R"({"type":"Replace","pattern":{"String":" "},"content":"▁"})";
  const auto file_with = [&](const std::string& map, bool first = true) {
    const std::string step = R"({"type":"Precompiled","precompiled_charsmap":)" + map + "},";
    File file;
    file.normalizer =
        R"({"type":"Sequence","normalizers":[)" + (first ? step + prepend : prepend + step) + replace + "]}";
    return file.text();
  };
  for (const char* const none : {"null", "\"\""})
    EXPECT_EQ(*read_good(file_with(none)).encode("a"), *read_good(File().text()).encode("a"));
  for (const char* const damaged : {"7", "\"AAA\"", "\"AA?A\"", "\"====\"", "\"A===\"", "\"AA=A\""})
    expect_error(file_with(damaged), Code::kDataLoss, "not in base 64");
  expect_error(file_with("\"AAQAAA==\""), Code::kDataLoss, "its character map is damaged or truncated");
  expect_error(file_with("\"\"", false), Code::kUnsupported, "something in its normalizer");
}

TEST(TokenizerJson, RefusesUnsupportedFeatures) {
  for (const char* const part : {"truncation", "padding", "pre_tokenizer", "post_processor"}) {
    File file;
    file.more = std::string(",\"") + part + "\":null";
    read_good(file.text());
    file.more = std::string(",\"") + part + R"(":{"type":"x"})";
    expect_error(file.text(), Code::kUnsupported, std::string("something in its ") + part);
  }
  File file;
  file.type = R"("BPE")";
  expect_error(file.text(), Code::kUnsupported, "not of the type Unigram");
  for (const char* const normalizer :
       {R"({"type":"NFKC"})", R"({"type":"Prepend","prepend":"x"})", R"({"type":"Prepend","prepend":"▁"})", "7",
        R"({"type":"Replace","pattern":{"Regex":" "},"content":"▁"})", R"({"type":"Sequence","normalizers":3})",
        R"({"type":"Replace","pattern":{"String":" "},"content":"_"})", R"({"type":"Replace","content":"▁"})"}) {
    File other;
    other.normalizer = normalizer;
    expect_error(other.text(), Code::kUnsupported, "something in its normalizer");
  }
  const std::string replace = R"({"type":"Replace","pattern":{"String":"▁"},"content":" "})";
  const std::string strip = R"({"type":"Strip","content":" ","start":1,"stop":0})";
  for (const std::string& decoders :
       {std::string(), replace, replace + R"(,{"type":"Fuse"})", R"({"type":"Fuse"},)" + strip,
        replace + R"(,{"type":"Fuse"},{"type":"Strip","content":" ","start":2,"stop":0})",
        replace + R"(,{"type":"ByteFallback"},{"type":"Fuse"},)" + strip,
        replace + R"(,{"type":"Fuse"},)" + strip + "," + strip}) {
    File other;
    other.decoder = R"({"type":"Sequence","decoders":[)" + decoders + "]}";
    expect_error(other.text(), Code::kUnsupported, "something in its decoder");
  }
  File bytes;
  bytes.fallback = "true";
  expect_error(bytes.text(), Code::kUnsupported, "something in its decoder");
  File added;
  added.added = R"([{"id":4,"content":"<x>"}])";
  expect_error(added.text(), Code::kUnsupported, "something in its added_tokens");
}

TEST(TokenizerJson, RefusesContradictions) {
  expect_error("{", Code::kDataLoss, "not valid JSON");
  expect_error("[]", Code::kDataLoss, "it has no model");
  for (const char* const vocab : {"null", "{}"}) {
    File file;
    file.vocab = vocab;
    expect_error(file.text(), Code::kDataLoss, "no vocabulary");
  }
  for (const char* const entry : {"3", R"(["a"])", R"(["a","b"])", R"([1,2])", R"(["a",1,2])"}) {
    File file;
    file.vocab = std::string("[") + entry + "]";
    expect_error(file.text(), Code::kDataLoss, "piece 0 is not a pair");
  }
  for (const char* const unk : {"null", "-1", "4", "0.5"}) {
    File file;
    file.unk = unk;
    expect_error(file.text(), Code::kDataLoss, "unk_id names no piece");
  }
  for (const char* const added : {"3", R"([{"id":1}])", R"([{"content":"a"}])", R"([{"id":1,"content":"b"}])"}) {
    File file;
    file.added = added;
    expect_error(file.text(), Code::kDataLoss, "added");
  }
  File twice;
  twice.vocab = R"([["<unk>",0],["a",1],["a",2]])";
  expect_error(twice.text(), Code::kDataLoss, "the piece 'a' stands twice");
  File byte = File();
  byte.decoder =
      R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]})";
  byte.fallback = "true";
  byte.vocab = R"([["<0x41>",0]])";
  expect_error(byte.text(), Code::kDataLoss, "the piece of a byte");
}

TEST(TokenizerJson, KeepsItsLimits) {
  expect_error(std::string(kMaxTokenizerFileBytes + 1, ' '), Code::kLimitExceeded, "the limit is 8388608");
  File file;
  file.vocab = "[";
  for (size_t i = 0; i <= UnigramTokenizer::kMaxPieces; ++i) file.vocab += "0,";
  file.vocab += "0]";
  expect_error(file.text(), Code::kLimitExceeded, "the limit is 1048576");
}

}  // namespace
}  // namespace syrinx::text
