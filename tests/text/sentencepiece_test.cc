#include "text/sentencepiece_file.h"

#include <ctime>
#include <limits>
#include <random>

#include "../base/protobuf_message.h"
#include "pocket_files.h"
#include "text/unicode.h"

namespace syrinx::text {
namespace {

using test::Message;
using Ids = std::vector<int32_t>;

Result<UnigramTokenizer> read(const std::string& bytes) { return read_sentencepiece(test::as_bytes(bytes), "file"); }
UnigramTokenizer read_data(const std::string& name) {
  auto tokenizer = read(test::read_pocket(name));
  EXPECT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  return std::move(*tokenizer);
}

std::string piece(const std::string& text, float score = 0, int type = 1) {
  Message inner;
  inner.text(1, text).real(2, score);
  if (type != 1) inner.number(3, static_cast<uint64_t>(type));
  return Message().text(1, inner.bytes).bytes;
}
// A file of these pieces after <unk>, without rules of any kind: no prefix, spaces as they are.
std::string plain_file(const std::string& pieces) {
  return piece("<unk>", 0, 2) + pieces + Message().text(3, Message().number(3, 0).number(4, 0).bytes).bytes;
}
void expect_error(const std::string& bytes, Code code, const std::string& says) {
  const auto tokenizer = read(bytes);
  ASSERT_FALSE(tokenizer.has_value()) << says;
  EXPECT_EQ(tokenizer.error().code, code) << tokenizer.error().message;
  EXPECT_NE(tokenizer.error().message.find(says), std::string::npos) << tokenizer.error().message;
}

TEST(SentencePiece, EncodesAndDecodesAsTheMaker) {
  const Json texts = test::pocket_texts();
  const Json::Array& cases = *texts.find("tokenize")->array();
  ASSERT_EQ(cases.size(), 36u);
  for (const auto& [file, key] : {std::pair{"tokenizer.model", "model"}, {"mapped.model", "mapped"}}) {
    const UnigramTokenizer tokenizer = read_data(file);
    EXPECT_EQ(tokenizer.size(), 400u);
    for (const Json& item : cases) {
      const std::string& text = test::text_of(item, "text");
      SCOPED_TRACE(std::string(file) + ": " + text);
      const Json& expected = *item.find(key);
      const auto ids = tokenizer.encode(text);
      ASSERT_TRUE(ids.has_value()) << ids.error().message;
      EXPECT_EQ(*ids, test::ids_of(expected));
      EXPECT_EQ(tokenizer.decode(*ids), test::text_of(expected, "decoded"));
    }
  }
}

TEST(SentencePiece, EveryTextComesBack) {
  const UnigramTokenizer tokenizer = read_data("tokenizer.model");
  for (const std::string text :
       {"", " ", "\t\r\n", "👩‍👩‍👧 emoji 😀", "Привет, мир", "日本語です。", "\x01\x7f\x1b[0m",
        "مرحبا ١٢٣", "<0x41> <unk>", "e\u0301\u200d\ufeff", "  two  spaces  "}) {
    const auto ids = tokenizer.encode(text);
    ASSERT_TRUE(ids.has_value()) << text;
    EXPECT_EQ(tokenizer.decode(*ids), text);
  }
  const std::string zero("a\0b", 3);
  EXPECT_EQ(tokenizer.decode(*tokenizer.encode(zero)), zero);
}

TEST(SentencePiece, MalformedTextIsAnError) {
  const UnigramTokenizer tokenizer = read_data("tokenizer.model");
  const auto ids = tokenizer.encode(
      "ab\xff"
      "c");
  ASSERT_FALSE(ids.has_value());
  EXPECT_EQ(ids.error().code, Code::kInvalidArgument);
  EXPECT_EQ(ids.error().message, "the text is not valid UTF-8 at byte 2");
}

TEST(SentencePiece, AMegabyteTakesNoLongerForBeingOneText) {
  const UnigramTokenizer tokenizer = read_data("tokenizer.model");
  std::mt19937 random(7);
  const std::vector<std::string> parts = {"e", "t", "a", "o", "the", " ", "s", "of ", ".", ", ", "é", "你"};
  std::string text;
  while (text.size() < 1'000'000) text += parts[random() % parts.size()];
  const std::clock_t start = std::clock();
  const auto ids = tokenizer.encode(text);
  ASSERT_TRUE(ids.has_value());
  EXPECT_EQ(tokenizer.decode(*ids), text);
  // Quadratic time would be hours.
  EXPECT_LT((std::clock() - start) / CLOCKS_PER_SEC, 10);
  EXPECT_EQ(tokenizer.encode(std::string(UnigramTokenizer::kMaxTextBytes, ' '))->size(),
            UnigramTokenizer::kMaxTextBytes + 1);
  const auto over = tokenizer.encode(std::string(UnigramTokenizer::kMaxTextBytes + 1, 'a'));
  ASSERT_FALSE(over.has_value());
  EXPECT_EQ(over.error().code, Code::kLimitExceeded);
}

TEST(SentencePiece, TakesThePathOfTheHighestScore) {
  // "abc" by hand: ab+c = -5, a+bc = -4.5, abc = -6, a+b+c = -9.
  const auto tokenizer = read(plain_file(piece("a", -3) + piece("b", -3) + piece("c", -3) + piece("ab", -2) +
                                         piece("bc", -1.5f) + piece("abc", -6)));
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  EXPECT_EQ(*tokenizer->encode("abc"), (Ids{1, 5}));
  EXPECT_EQ(*tokenizer->encode("ab"), (Ids{4}));
  EXPECT_EQ(*tokenizer->encode("cba"), (Ids{3, 2, 1}));
}

TEST(SentencePiece, WithoutBytesARunOfTheUnknownIsOnePiece) {
  const auto tokenizer = read(plain_file(piece("a", -3) + piece("b", -3, 5)));
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  EXPECT_EQ(*tokenizer->encode("aéba"), (Ids{1, 0, 1}));  // b is an unused piece
  EXPECT_EQ(tokenizer->decode(Ids{1, 0, 1}), "a ⁇ a");
  EXPECT_EQ(tokenizer->byte_of(1), -1);
  EXPECT_EQ(tokenizer->decode(Ids{-1, 99, 1}), "a");
}

TEST(SentencePiece, TheFileSaysWhatStandsForTheUnknown) {
  const auto tokenizer = read(plain_file(piece("a", -3)) + Message().text(2, Message().text(44, "?").bytes).bytes);
  ASSERT_TRUE(tokenizer.has_value());
  EXPECT_EQ(tokenizer->decode(Ids{0, 1, 0}), "?a?");
}

TEST(SentencePiece, ControlPiecesAreSilent) {
  const UnigramTokenizer tokenizer = read_data("tokenizer.model");
  Ids ids = *tokenizer.encode("to be");
  ids.insert(ids.begin(), 1);
  ids.push_back(2);
  EXPECT_EQ(tokenizer.decode(ids), "to be");
  EXPECT_EQ(tokenizer.byte_of(4 + 0x41), 0x41);
  EXPECT_EQ(tokenizer.byte_of(-1), -1);
  EXPECT_EQ(tokenizer.byte_of(400), -1);
}

TEST(SentencePiece, MalformedBytesAreReplacedOneByOne) {
  const UnigramTokenizer tokenizer = read_data("tokenizer.model");
  EXPECT_EQ(tokenizer.decode(Ids{4 + 0xE4, 4 + 0x41, 4 + 0xC3, 4 + 0xA9}), "\uFFFDAé");
}

TEST(SentencePiece, SpacesMayStayAsTheyAre) {
  const std::string file = piece("<unk>", 0, 2) + piece(" ", -1) + piece("a", -1) +
                           Message().text(3, Message().number(4, 0).number(5, 0).bytes).bytes;
  const auto tokenizer = read(file);
  ASSERT_TRUE(tokenizer.has_value());
  EXPECT_EQ(*tokenizer->encode("a a"), (Ids{1, 2, 1, 2}));
}

TEST(SentencePiece, RefusesWhatItCannotDo) {
  const std::string good = plain_file(piece("a", -3));
  ASSERT_TRUE(read(good).has_value());
  const auto trainer = [&](int field, uint64_t value) {
    return good + Message().text(2, Message().number(field, value).bytes).bytes;
  };
  EXPECT_TRUE(read(trainer(3, 1)).has_value());
  expect_error(trainer(3, 2), Code::kUnsupported, "another type");
  expect_error(trainer(24, 1), Code::kUnsupported, "spaces after words");
  expect_error(plain_file(piece("a", -3, 4)), Code::kUnsupported, "user-defined");
  expect_error(good + Message().text(5, Message().text(2, "rules").bytes).bytes, Code::kUnsupported, "decoded text");
  EXPECT_TRUE(read(good + Message().text(5, Message().text(2, "").bytes).bytes).has_value());
}

TEST(SentencePiece, RefusesWhatContradictsItself) {
  expect_error("", Code::kDataLoss, "no pieces");
  expect_error(piece("a"), Code::kDataLoss, "no piece for what is unknown");
  expect_error(plain_file(piece("<u>", 0, 2)), Code::kDataLoss, "pieces 0 and 1 are both");
  expect_error(plain_file(piece("a") + piece("a")), Code::kDataLoss, "the piece 'a' stands twice");
  expect_error(plain_file(piece("")), Code::kDataLoss, "piece 1 is empty");
  expect_error(plain_file(piece("\xff")), Code::kDataLoss, "piece 1 is empty or not UTF-8");
  expect_error(plain_file(piece("a", std::numeric_limits<float>::infinity())), Code::kDataLoss, "not a finite number");
  expect_error(plain_file(piece("a", 0, 9)), Code::kDataLoss, "unknown type 9");
  expect_error(plain_file(piece("<0x4>", 0, 6)), Code::kDataLoss, "misspelt");
  expect_error(plain_file(piece("<0x4g>", 0, 6)), Code::kDataLoss, "misspelt");
  expect_error(plain_file(piece("<0x41>", 0, 6) + piece("<0x41>", 0, 6)), Code::kDataLoss, "stands twice");
  const std::string bytes_wanted = Message().text(2, Message().number(35, 1).bytes).bytes;
  expect_error(plain_file(piece("<0x41>", 0, 6)) + bytes_wanted, Code::kDataLoss, "lacks some of the 256");
  const std::string surface = Message().text(2, Message().text(44, "\xff").bytes).bytes;
  expect_error(plain_file(piece("a")) + surface, Code::kDataLoss, "stands for unknown characters");
}

TEST(SentencePiece, KeepsItsLimits) {
  expect_error(plain_file(piece(std::string(65, 'a'))), Code::kLimitExceeded, "piece 1 has 65 bytes");
  EXPECT_TRUE(read(plain_file(piece(std::string(64, 'a')))).has_value());
  expect_error(std::string(kMaxTokenizerFileBytes + 1, 'a'), Code::kLimitExceeded, "the limit for a tokenizer");
  std::string many;
  for (size_t i = 0; i <= UnigramTokenizer::kMaxPieces; ++i) many += Message().text(1, "").bytes;
  expect_error(many, Code::kLimitExceeded, "has more than 1048576 pieces");

  // Long pieces that share nothing but their first bytes: a node a byte.
  std::string branches;
  for (int i = 0; i < 40'000; ++i) branches += piece(fmt::format("{:05}{:a>59}", i, ""));
  expect_error(plain_file(branches), Code::kLimitExceeded, "more than 2097152 nodes");
}

TEST(SentencePiece, SurvivesEveryCutAndEveryChangedByte) {
  for (const char* name : {"tokenizer.model", "mapped.model"}) {
    const std::string good = test::read_pocket(name);
    const auto use = [](const std::string& bytes) {
      const auto tokenizer = read(bytes);
      if (!tokenizer) return;
      const auto ids = tokenizer->encode("He said… “ﬁne” ½ e\u0301 ①② 😀");
      ASSERT_TRUE(ids.has_value()) << ids.error().message;
      EXPECT_FALSE(find_invalid(tokenizer->decode(*ids)));
    };
    for (size_t size = 0; size < good.size(); size += 11) use(good.substr(0, size));
    std::string bytes = good;
    for (size_t i = 0; i < good.size(); i += i < 6000 ? 13 : 1) {  // every byte of the settings and the map
      for (const int flip : {0x01, 0x80, 0xff}) {
        bytes[i] = static_cast<char>(good[i] ^ flip);
        use(bytes);
      }
      bytes[i] = good[i];
    }
  }
}

}  // namespace
}  // namespace syrinx::text
