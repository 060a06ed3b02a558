#include "tensor/gguf.h"

#include "files.h"
#include "gguf_bytes.h"

namespace syrinx {
namespace {

using test::GgufBytes;

constexpr uint32_t kU32 = 4, kBool = 7, kString = 8, kArray = 9, kF16 = 1, kQ4_0 = 2, kQ2_K = 10;

// Two tensors that fill their blocks.
GgufBytes two_tensors() {
  GgufBytes file;
  file.entries = {GgufBytes::entry("general.architecture", kString, GgufBytes::string("llama")),
                  GgufBytes::number<uint32_t>("llama.block_count", kU32, 30)};
  file.tensors = {{"a", {32, 2}, kQ4_0, 0}, {"b", {3}, 0, 64}};
  file.blocks = std::string(36, '\1') + std::string(28, '\0') + std::string(12, '\0');
  return file;
}

Error error_of(const std::string& bytes) {
  const auto parsed = GgufFile::parse(test::as_bytes(bytes), "hostile");
  EXPECT_FALSE(parsed.has_value());
  return parsed ? Error{} : parsed.error();
}
void expect_error(const GgufBytes& file, Code code, const std::string& words) {
  const Error error = error_of(file.file());
  EXPECT_EQ(error.code, code) << error.message;
  EXPECT_NE(error.message.find(words), std::string::npos) << error.message;
}
template <class T>
std::string words_of(const Result<T>& result) {
  EXPECT_FALSE(result.has_value());
  return result ? "" : result.error().message;
}

TEST(Gguf, EntriesOfEveryKindAreRead) {
  const std::string bytes = test::read_data("types.gguf");
  const auto file = GgufFile::parse(test::as_bytes(bytes), "types.gguf");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->version(), 3u);
  EXPECT_EQ(file->text("general.architecture")->value(), "types");
  for (const auto& [key, value] : {std::pair{"kind.u8", uint64_t{200}}, {"kind.u16", 60000}, {"kind.u32", 4000000000}})
    EXPECT_EQ(file->whole(key)->value(), value) << key;
  for (const auto& [key, value] : {std::pair{"kind.i8", -100.0},
                                   {"kind.i16", -30000.0},
                                   {"kind.i32", -2e9},
                                   {"kind.u64", 9223372036854775813.0},
                                   {"kind.i64", -4611686018427387904.0},
                                   {"kind.f32", double{0.1f}},
                                   {"kind.f64", 0.1}})
    EXPECT_EQ(file->number(key)->value(), value) << key;
  EXPECT_TRUE(file->flag("kind.bool")->value());
  EXPECT_EQ(file->text("kind.string")->value(), "Grüße");
  EXPECT_EQ(*file->wholes("array.i32", 3), (std::vector<int64_t>{1, -2, 3}));
  EXPECT_EQ(*file->numbers("array.i32", 3), (std::vector<double>{1, -2, 3}));
  EXPECT_EQ(*file->numbers("array.f32", 2), (std::vector<double>{0.5, -1.5}));
  EXPECT_EQ(*file->texts("array.string", 3), (std::vector<std::string_view>{"a", "", "Ġthe"}));
  EXPECT_TRUE(file->has("array.bool"));
}

TEST(Gguf, OtherKindIsRefused) {
  const std::string bytes = test::read_data("types.gguf");
  const auto file = GgufFile::parse(test::as_bytes(bytes), "types.gguf");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(*file->whole("none"), std::nullopt);
  EXPECT_EQ(*file->text("none"), std::nullopt);
  EXPECT_TRUE(file->texts("none", 1)->empty());
  EXPECT_EQ(words_of(file->whole("kind.i8")), "'types.gguf': the entry 'kind.i8' is not a whole number");
  EXPECT_EQ(words_of(file->whole("kind.u64")), "'types.gguf': the entry 'kind.u64' is not a whole number");
  EXPECT_EQ(words_of(file->whole("kind.f32")), "'types.gguf': the entry 'kind.f32' is not a whole number");
  EXPECT_EQ(words_of(file->number("kind.bool")), "'types.gguf': the entry 'kind.bool' is not a number");
  EXPECT_EQ(words_of(file->text("kind.u8")), "'types.gguf': the entry 'kind.u8' is not a text");
  EXPECT_EQ(words_of(file->flag("kind.u8")), "'types.gguf': the entry 'kind.u8' is not true or false");
  EXPECT_EQ(words_of(file->text("array.string")), "'types.gguf': the entry 'array.string' is not a single value");
  EXPECT_EQ(words_of(file->texts("kind.string", 1)), "'types.gguf': the entry 'kind.string' is not an array");
  EXPECT_EQ(words_of(file->texts("array.i32", 9)), "'types.gguf': the entry 'array.i32' is not an array of texts");
  EXPECT_EQ(words_of(file->wholes("array.f32", 9)),
            "'types.gguf': the entry 'array.f32' is not an array of whole numbers");
  EXPECT_EQ(words_of(file->numbers("array.bool", 9)),
            "'types.gguf': the entry 'array.bool' is not an array of numbers");
  EXPECT_EQ(words_of(file->texts("array.string", 2)),
            "'types.gguf': the entry 'array.string' has 3 elements, the limit is 2");
}

TEST(Gguf, TensorsAreFoundByName) {
  const std::string bytes = two_tensors().file();
  const auto file = GgufFile::parse(test::as_bytes(bytes), "good");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  ASSERT_EQ(file->tensors().size(), 2u);
  const GgufTensor* const a = file->find("a");
  ASSERT_EQ(a, &file->tensors()[0]);
  EXPECT_EQ(a->dims, (std::vector<size_t>{2, 32}));
  EXPECT_EQ(a->bytes.size(), 36u);
  EXPECT_EQ(file->find("c"), nullptr);
  EXPECT_EQ(file->whole("llama.block_count")->value(), 30u);
}

TEST(Gguf, ReadsTheVersionBefore) {
  GgufBytes file = two_tensors();
  file.version = 2;
  const std::string bytes = file.file();
  const auto parsed = GgufFile::parse(test::as_bytes(bytes), "good");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->version(), 2u);
}

TEST(Gguf, AlignsAsTheFileAsks) {
  GgufBytes file = two_tensors();
  file.entries.push_back(GgufBytes::number<uint32_t>("general.alignment", kU32, 8));
  file.alignment = 8;
  file.tensors[1].offset = 40;
  file.blocks = std::string(40, '\1') + std::string(12, '\2');
  const std::string bytes = file.file();
  const auto parsed = GgufFile::parse(test::as_bytes(bytes), "good");
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(parsed->find("b")->bytes[0], std::byte{2});
  for (const uint32_t alignment : {0u, 4u, 48u, 1u << 17}) {
    file.entries.back() = GgufBytes::number<uint32_t>("general.alignment", kU32, alignment);
    expect_error(file, Code::kDataLoss, "an alignment of");
  }
}

TEST(Gguf, RefusesEveryTruncation) {
  const std::string bytes = two_tensors().file();
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_EQ(error_of(bytes.substr(0, size)).code, Code::kDataLoss);
}

// Every beginning, and every byte changed: what is read of what is still a file lies inside it.
TEST(Gguf, HostileBytesStayInside) {
  test::sweep_hostile(two_tensors().file(), [](std::span<const std::byte> bytes) {
    const auto file = GgufFile::parse(bytes, "hostile");
    if (!file) return;
    for (const GgufTensor& tensor : file->tensors()) {
      std::vector<float> values(*element_count(tensor.dims));
      ggml_to_f32(tensor.bytes, tensor.type, values.data());
    }
    (void)file->text("general.architecture");
    (void)file->whole("llama.block_count");
  });
}

TEST(Gguf, RefusesOtherFormats) {
  EXPECT_EQ(error_of("GGML and more than eight").message, "'hostile' is not a GGUF file");
  GgufBytes file = two_tensors();
  file.version = 1;
  expect_error(file, Code::kUnsupported, "of version 1, known are 2 and 3");
  file.version = 0x03000000;
  expect_error(file, Code::kUnsupported, "big-endian");
  file = two_tensors();
  file.entries.push_back(GgufBytes::number<uint16_t>("split.count", 2, 3));
  expect_error(file, Code::kUnsupported, "one of 3 files");
}

TEST(Gguf, ImpossibleCountsAreRefused) {
  GgufBytes file = two_tensors();
  file.extra_entries = 20;
  expect_error(file, Code::kDataLoss, "more than its");
  file.extra_entries = GgufFile::kMaxEntries;
  expect_error(file, Code::kLimitExceeded, "entries, the limit is 65536");
  file = two_tensors();
  file.extra_tensors = ~uint64_t{0} - 5;
  expect_error(file, Code::kLimitExceeded, "tensors, the limit is 65536");
}

TEST(Gguf, DamagedEntriesAreRefused) {
  const auto with = [](std::string entry) {
    GgufBytes file = two_tensors();
    file.entries.push_back(std::move(entry));
    return file;
  };
  expect_error(with(GgufBytes::entry("k", 13, "")), Code::kDataLoss, "the unknown kind 13");
  expect_error(with(GgufBytes::entry("k", kBool, "\2")), Code::kDataLoss, "neither true nor false");
  expect_error(with(GgufBytes::entry("llama.block_count", kBool, "\1")), Code::kDataLoss, "twice");
  expect_error(with(GgufBytes::entry(std::string(65536, 'k'), kBool, "\1")), Code::kLimitExceeded,
               "a key of 65536 bytes");
  std::string array;
  GgufBytes::append<uint32_t>(array, kArray);
  GgufBytes::append<uint64_t>(array, 1);
  expect_error(with(GgufBytes::entry("k", kArray, array)), Code::kUnsupported, "an array of arrays");
  for (const uint32_t kind : {kU32, kString, kBool}) {
    array.clear();
    GgufBytes::append<uint32_t>(array, kind);
    GgufBytes::append<uint64_t>(array, uint64_t{1} << 61);
    expect_error(with(GgufBytes::entry("k", kArray, array)), Code::kDataLoss, "in the entry 'k'");
  }
  std::string text;
  GgufBytes::append<uint64_t>(text, ~uint64_t{0});
  expect_error(with(GgufBytes::entry("k", kString, text)), Code::kDataLoss, "in the entry 'k'");
}

TEST(Gguf, TensorsThatDoNotFitAreRefused) {
  const auto with = [](GgufBytes::Tensor tensor) {
    GgufBytes file = two_tensors();
    file.tensors[1] = std::move(tensor);
    return file;
  };
  expect_error(with({"b", {3}, kQ2_K, 64}), Code::kUnsupported,
               "the type Q2_K, known are F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K");
  expect_error(with({"b", {3}, 77, 64}), Code::kUnsupported, "the type number 77");
  expect_error(with({"b", {3, 0}, 0, 64}), Code::kDataLoss, "of shape [0, 3]");
  expect_error(with({"b", {uint64_t{1} << 40, uint64_t{1} << 40}, 0, 64}), Code::kDataLoss, "of shape");
  expect_error(with({"b", {1, 1, 1, 1, 3}, 0, 64}), Code::kLimitExceeded, "5 dimensions");
  expect_error(with({"b", {16, 2}, kQ4_0, 64}), Code::kDataLoss, "no whole blocks of Q4_0");
  expect_error(with({"b", {4}, 0, 64}), Code::kDataLoss, "the file ends before");
  expect_error(with({"b", {3}, 0, ~uint64_t{0} - 31}), Code::kDataLoss, "the file ends before");
  expect_error(with({"b", {3}, 0, 60}), Code::kDataLoss, "not aligned to 32 bytes");
  expect_error(with({"b", {3}, kF16, 32}), Code::kDataLoss, "'a' and 'b' overlap");
  expect_error(with({"a", {3}, 0, 64}), Code::kDataLoss, "the tensor 'a' twice");
  expect_error(with({std::string(256, 'n'), {3}, 0, 64}), Code::kLimitExceeded, "a tensor's name of 256 bytes");
}

TEST(Gguf, NamesInMessagesAreHarmless) {
  GgufBytes file = two_tensors();
  file.tensors[1].name = "\x1b[2J";
  file.tensors[1].type = kQ2_K;
  expect_error(file, Code::kUnsupported, "'?[2J'");
}

}  // namespace
}  // namespace syrinx
