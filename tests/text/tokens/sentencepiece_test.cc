#include "text/tokens/sentencepiece_file.h"

#include <cmath>
#include <ctime>
#include <limits>
#include <random>

#include "tests/base/protobuf_message.h"
#include "tests/text/pocket_files.h"
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
template <class T>
void expect_refused(const Result<T>& read, Code code, const std::string& says) {
  ASSERT_FALSE(read.has_value()) << says;
  EXPECT_EQ(read.error().code, code) << read.error().message;
  EXPECT_NE(read.error().message.find(says), std::string::npos) << read.error().message;
}
void expect_error(const std::string& bytes, Code code, const std::string& says) {
  expect_refused(read(bytes), code, says);
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

TEST(SentencePiece, FileSetsTheUnknownMark) {
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

TEST(SentencePiece, RefusesUnsupportedModels) {
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

TEST(SentencePiece, RefusesContradictions) {
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

// --- the pieces alone

Result<StoredPieces> read_pieces(const std::string& bytes) {
  return read_sentencepiece_pieces(test::as_bytes(bytes), "file");
}
std::string read_text(const std::string& name) {
  std::ifstream file(std::string(SYRINX_TEST_DATA) + "/text/" + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
std::string of_type(uint64_t type) { return Message().text(2, Message().number(3, type).bytes).bytes; }

void expect_pieces_error(const std::string& bytes, Code code, const std::string& says) {
  expect_refused(read_pieces(bytes), code, says);
}

// A BPE model of SentencePiece's trainer, and what its own package says of it.
TEST(StoredPieces, OfABpeModelAreTheMakers) {
  const auto read = read_pieces(read_text("bpe.model"));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_TRUE(read->bpe);
  const auto said = parse_json(read_text("bpe.json"), "bpe.json");
  ASSERT_TRUE(said.has_value()) << said.error().message;
  const Json::Array& expected = *said->find("pieces")->array();
  ASSERT_EQ(read->pieces.size(), expected.size());
  std::vector<size_t> of_each(StoredPiece::kByte + 1);
  for (size_t id = 0; id < expected.size(); ++id) {
    const Json::Array& piece = *expected[id].array();
    EXPECT_EQ(read->pieces[id].text, *piece[0].string());
    EXPECT_EQ(read->pieces[id].score, static_cast<float>(*piece[1].real())) << id;
    EXPECT_EQ(read->pieces[id].type, *piece[2].whole()) << id;
    ++of_each[read->pieces[id].type];
  }
  EXPECT_EQ(of_each[StoredPiece::kUnknown], 1u);
  EXPECT_EQ(of_each[StoredPiece::kControl], 1u);
  EXPECT_EQ(of_each[StoredPiece::kUserDefined], 3u);
  EXPECT_EQ(of_each[StoredPiece::kByte], 256u);
  EXPECT_GT(of_each[StoredPiece::kNormal], 100u);
}

TEST(StoredPieces, OfAUnigramModelAreAllOfIt) {
  const auto read = read_pieces(test::read_pocket("tokenizer.model"));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_FALSE(read->bpe);
  EXPECT_EQ(read->pieces.size(), 400u);
  // A piece of an unused type is kept; a file without a type is of the first type.
  const auto odd = read_pieces(piece("a", -1, 5) + piece("b", -2, 4) + of_type(1));
  ASSERT_TRUE(odd.has_value()) << odd.error().message;
  EXPECT_FALSE(odd->bpe);
  EXPECT_EQ(odd->pieces[0].type, StoredPiece::kUnused);
  EXPECT_EQ(odd->pieces[1].type, StoredPiece::kUserDefined);
  EXPECT_EQ(odd->pieces[1].score, -2.0f);
}

TEST(StoredPieces, RefuseContradictions) {
  const std::string good = piece("a");
  ASSERT_TRUE(read_pieces(good).has_value());
  expect_pieces_error("", Code::kDataLoss, "no pieces");
  expect_pieces_error(of_type(2), Code::kDataLoss, "no pieces");
  expect_pieces_error(good + of_type(3), Code::kUnsupported, "of words or characters");
  expect_pieces_error(good + of_type(4), Code::kUnsupported, "of words or characters");
  expect_pieces_error(good + piece("b", 0, 7), Code::kDataLoss, "piece 1 is of the unknown type 7");
  expect_pieces_error(good + Message().text(1, Message().text(1, "b").number(3, 0).bytes).bytes, Code::kDataLoss,
                      "unknown type 0");
  expect_pieces_error(good + piece(""), Code::kDataLoss, "piece 1 is empty or not UTF-8");
  expect_pieces_error(piece("a\xC3"), Code::kDataLoss, "piece 0 is empty or not UTF-8");
  for (const float score : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()})
    expect_pieces_error(piece("a", score), Code::kDataLoss, "the score of piece 0 is not a finite number");
  expect_pieces_error(good + "\x0a", Code::kDataLoss, "a field does not fit");
}

TEST(StoredPieces, KeepTheirLimits) {
  expect_pieces_error(piece(std::string(kMaxStoredPieceBytes + 1, 'a')), Code::kLimitExceeded, "piece 0 has 257 bytes");
  EXPECT_TRUE(read_pieces(piece(std::string(kMaxStoredPieceBytes, 'a'))).has_value());
  expect_pieces_error(std::string(kMaxTokenizerFileBytes + 1, 'a'), Code::kLimitExceeded, "the limit for a tokenizer");
  const std::string one = Message().text(1, Message().text(1, "a").bytes).bytes;
  std::string many;
  for (size_t i = 0; i <= UnigramTokenizer::kMaxPieces; ++i) many += one;
  expect_pieces_error(many, Code::kLimitExceeded, "has more than 1048576 pieces");
}

bool is_of_form(const StoredPiece& piece) {
  return !piece.text.empty() && piece.text.size() <= kMaxStoredPieceBytes && !find_invalid(piece.text) &&
         std::isfinite(piece.score) && piece.type >= StoredPiece::kNormal && piece.type <= StoredPiece::kByte;
}
void expect_form_if_read(const std::string& bytes) {
  const auto read = read_pieces(bytes);
  if (!read) return;
  EXPECT_FALSE(read->pieces.empty());
  for (const StoredPiece& piece : read->pieces) ASSERT_TRUE(is_of_form(piece));
}

// A file that ends early has the first of its pieces or none; whatever a byte becomes, what is read keeps its promises.
TEST(StoredPieces, SurviveEveryCutAndEveryChangedByte) {
  const std::string good = piece("<unk>", 0, 2) + piece("<ctl>", 0, 3) + piece("<EOU>", 0, 4) + piece("<0xC3>", 0, 6) +
                           piece("\u2581\u00E9", -1) + piece("b", -2.5f, 5) + of_type(2);
  const auto whole = read_pieces(good);
  ASSERT_TRUE(whole.has_value());
  ASSERT_EQ(whole->pieces.size(), 6u);
  size_t cut_between = 0;
  for (size_t size = 0; size < good.size(); ++size) {
    const auto read = read_pieces(good.substr(0, size));
    if (!read) continue;
    ASSERT_EQ(read->pieces.size(), ++cut_between);
    for (size_t id = 0; id < read->pieces.size(); ++id) ASSERT_EQ(read->pieces[id].text, whole->pieces[id].text);
  }
  EXPECT_EQ(cut_between, 6u);
  std::string bytes = good;
  for (size_t i = 0; i < good.size(); ++i) {
    for (int flip = 1; flip < 256; ++flip) {
      bytes[i] = static_cast<char>(good[i] ^ flip);
      expect_form_if_read(bytes);
    }
    bytes[i] = good[i];
  }
  bytes = read_text("bpe.model");
  for (size_t i = 0; i < bytes.size(); i += 31) {
    bytes[i] = static_cast<char>(bytes[i] ^ 0x80);
    expect_form_if_read(bytes);
    bytes[i] = static_cast<char>(bytes[i] ^ 0x80);
  }
}

}  // namespace
}  // namespace syrinx::text
