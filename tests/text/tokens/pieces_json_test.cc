#include "text/tokens/pieces_json.h"

#include <gtest/gtest.h>

namespace syrinx::text {
namespace {

TEST(PiecesJson, OfABpeModel) {
  const auto read = read_pieces_json(
      R"({"added_tokens":[{"id":3,"content":"<s>","special":true},{"id":1,"content":"ab","special":false}],
          "pre_tokenizer":{"type":"Metaspace"},
          "model":{"type":"BPE","unk_token":"?","byte_fallback":true,"vocab":{"a":0,"ab":1,"?":2,"<0x41>":4,"aa":5},
                   "merges":["a a",["a","b"],"a a"]}})",
      "t");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_TRUE(read->bpe);
  ASSERT_EQ(read->pieces.size(), 6u);
  EXPECT_EQ(read->pieces[0].type, StoredPiece::kNormal);
  EXPECT_EQ(read->pieces[1].type, StoredPiece::kUserDefined);
  EXPECT_EQ(read->pieces[1].score, -1);
  EXPECT_EQ(read->pieces[2].type, StoredPiece::kUnknown);
  EXPECT_EQ(read->pieces[3].type, StoredPiece::kControl);
  EXPECT_EQ(read->pieces[4].type, StoredPiece::kByte);
  EXPECT_EQ(read->pieces[5].score, 0);  // the first of its merges counts
}

TEST(PiecesJson, OfAUnigramModel) {
  const auto read = read_pieces_json(R"({"model":{"type":"Unigram","unk_id":1,"vocab":[["a",-1.5],["?",0]]}})", "t");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_FALSE(read->bpe);
  EXPECT_EQ(read->pieces[0].score, -1.5f);
  EXPECT_EQ(read->pieces[1].type, StoredPiece::kUnknown);
}

TEST(PiecesJson, RefusesContradictions) {
  const std::pair<const char*, Code> cases[] = {
      {"[", Code::kDataLoss},
      {"{}", Code::kDataLoss},
      {R"({"model":{"type":"WordPiece"}})", Code::kUnsupported},
      {R"({"pre_tokenizer":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{},"merges":[]}})", Code::kUnsupported},
      {R"({"decoder":{"type":"ByteLevel"},"model":{"type":"Unigram","vocab":[["a",1]]}})", Code::kUnsupported},
      {R"({"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split"},{"type":"ByteLevel"}]},
           "model":{"type":"Unigram","vocab":[["a",1]]}})",
       Code::kUnsupported},
      {R"({"decoder":{"type":"Sequence","decoders":[{"type":"Sequence","decoders":[{"type":"ByteLevel"}]}]},
           "model":{"type":"Unigram","vocab":[["a",1]]}})",
       Code::kUnsupported},
      {R"({"model":{"type":"BPE","vocab":[]}})", Code::kDataLoss},
      {R"({"model":{"type":"BPE","vocab":{"a":-1}}})", Code::kDataLoss},
      {R"({"model":{"type":"BPE","vocab":{"a":1048576}}})", Code::kLimitExceeded},
      {R"({"model":{"type":"BPE","vocab":{"a":0,"b":0}}})", Code::kDataLoss},
      {R"({"model":{"type":"BPE","vocab":{"a":0,"b":2},"merges":[]}})", Code::kDataLoss},
      {R"({"model":{"type":"BPE","vocab":{"a":0}}})", Code::kDataLoss},
      {R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a"]}})", Code::kDataLoss},
      {R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[["a",1]]}})", Code::kDataLoss},
      {R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a a"]}})", Code::kDataLoss},
      {R"({"model":{"type":"Unigram","vocab":{}}})", Code::kDataLoss},
      {R"({"model":{"type":"Unigram","vocab":[["a","b"]]}})", Code::kDataLoss},
      {R"({"model":{"type":"Unigram","vocab":[["a",-1e39]]}})", Code::kDataLoss},
      {R"({"model":{"type":"Unigram","vocab":[["a",1]]},"added_tokens":{}})", Code::kDataLoss},
      {R"({"model":{"type":"Unigram","vocab":[["a",1]]},"added_tokens":[{"id":1}]})", Code::kDataLoss},
      {R"({"model":{"type":"Unigram","vocab":[["a",1]]},"added_tokens":[{"content":"b"}]})", Code::kDataLoss}};
  for (const auto& [json, code] : cases) {
    const auto read = read_pieces_json(json, "t");
    ASSERT_FALSE(read.has_value()) << json;
    EXPECT_EQ(read.error().code, code) << json << read.error().message;
  }
}

TEST(PiecesJson, PiecesHaveALimit) {
  const auto of_bytes = [](size_t count) {
    return R"({"model":{"type":"Unigram","vocab":[[")" + std::string(count, 'a') + R"(",1]]}})";
  };
  EXPECT_TRUE(read_pieces_json(of_bytes(kMaxStoredPieceBytes), "t").has_value());
  const auto over = read_pieces_json(of_bytes(kMaxStoredPieceBytes + 1), "t");
  ASSERT_FALSE(over.has_value());
  EXPECT_EQ(over.error().code, Code::kLimitExceeded);
  EXPECT_EQ(over.error().message, "'t': piece 0 has 257 bytes, the limit is 256");
}

}  // namespace
}  // namespace syrinx::text
