#include "tensor/safetensors.h"

#include "files.h"

namespace syrinx {
namespace {

std::string file_with(const std::string& header, size_t data_bytes = 0) {
  const uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + header + std::string(data_bytes, '\1');
}

Error error_of(const std::string& file) {
  const auto parsed = Safetensors::parse(test::as_bytes(file), "hostile");
  EXPECT_FALSE(parsed.has_value());
  return parsed ? Error{} : parsed.error();
}

TEST(Safetensors, ReadsTheMakersFiles) {
  for (const char* name : {"plain.safetensors", "brain.safetensors"}) {
    const std::string bytes = test::read_data(name);
    const auto file = Safetensors::parse(test::as_bytes(bytes), name);
    ASSERT_TRUE(file.has_value()) << file.error().message;
    const Json expected = test::expected_tensors(name);
    EXPECT_EQ(file->tensors().size(), expected.object()->size());
    for (const JsonMember& member : *expected.object()) {
      const TensorRef* const tensor = file->find(member.key);
      ASSERT_NE(tensor, nullptr) << member.key;
      test::expect_tensor(member, tensor->dtype, tensor->dims, to_f32(tensor->bytes, tensor->dtype));
    }
    EXPECT_EQ(file->find("zzz"), nullptr);
  }
}

TEST(Safetensors, KeepsTheMetadata) {
  const std::string bytes = test::read_data("plain.safetensors");
  const auto file = Safetensors::parse(test::as_bytes(bytes), "plain");
  ASSERT_TRUE(file.has_value());
  auto metadata = file->metadata();
  std::sort(metadata.begin(), metadata.end());
  ASSERT_EQ(metadata.size(), 2u);
  EXPECT_EQ(metadata[0].second, "np");
  EXPECT_EQ(metadata[1].second, "ünïcode");
}

TEST(Safetensors, WritingRepeatsTheFile) {
  const std::string bytes = test::read_data("plain.safetensors");
  const auto file = Safetensors::parse(test::as_bytes(bytes), "plain");
  ASSERT_TRUE(file.has_value());
  const std::string written = write_safetensors(file->tensors());
  const auto again = Safetensors::parse(test::as_bytes(written), "again");
  ASSERT_TRUE(again.has_value()) << again.error().message;
  ASSERT_EQ(again->tensors().size(), file->tensors().size());
  for (size_t i = 0; i < file->tensors().size(); ++i) {
    const TensorRef& a = file->tensors()[i];
    const TensorRef& b = again->tensors()[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.dims, b.dims);
    EXPECT_EQ(a.dtype, b.dtype);
    EXPECT_TRUE(std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end()));
  }
}

TEST(Safetensors, RefusesMalformedFiles) {
  struct Case {
    std::string file;
    Code code;
    const char* says;
  };
  const auto one = [](const std::string& entry) { return file_with("{\"t\":" + entry + "}", 8); };
  const Case cases[] = {
      {"", Code::kDataLoss, "truncated"},
      {std::string(8, '\xff'), Code::kLimitExceeded, "limit"},
      {file_with("{").substr(0, 8), Code::kDataLoss, "truncated"},
      {file_with("{"), Code::kDataLoss, "JSON"},
      {file_with("[]"), Code::kDataLoss, "not an object"},
      {file_with(R"({"__metadata__":[]})"), Code::kDataLoss, "__metadata__"},
      {file_with(R"({"a":{"b":{"c":{"d":{"e":{"f":{"g":{"h":{}}}}}}}}})"), Code::kLimitExceeded, "deeper"},
      {file_with(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"t":{}})", 1), Code::kDataLoss, "twice"},
      {file_with(
           R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
           3),
       Code::kDataLoss, "overlap"},
      {one("3"), Code::kDataLoss, "lacks"},
      {one(R"({"dtype":1,"shape":[2],"data_offsets":[0,8]})"), Code::kDataLoss, "lacks"},
      {one(R"({"dtype":"F32","shape":[2]})"), Code::kDataLoss, "lacks"},
      {one(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), Code::kDataLoss, "lacks"},
      {one(R"({"dtype":"F32","shape":[2.5],"data_offsets":[0,8]})"), Code::kDataLoss, "lacks"},
      {one(R"({"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]})"), Code::kDataLoss, "lacks"},
      {one(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})"), Code::kDataLoss, "lacks"},
      {one(R"({"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]})"), Code::kUnsupported, "F8_E4M3"},
      {one(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), Code::kDataLoss, "occupies"},
      {one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,12]})"), Code::kDataLoss, "occupies"},
      {one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"), Code::kDataLoss, "does not fill"},
      {one(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]})"), Code::kDataLoss,
       "does not fill"},
  };
  for (const Case& hostile : cases) {
    const Error error = error_of(hostile.file);
    EXPECT_EQ(error.code, hostile.code) << error.message;
    EXPECT_NE(error.message.find(hostile.says), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("hostile"), std::string::npos) << error.message;
  }
}

TEST(Safetensors, SurvivesEveryTruncationAndFlip) {
  test::sweep_hostile(test::read_data("plain.safetensors"), [](std::span<const std::byte> bytes) {
    const auto file = Safetensors::parse(bytes, "hostile");
    if (file)
      for (const TensorRef& tensor : file->tensors()) to_f32(tensor.bytes, tensor.dtype);
  });
}

}  // namespace
}  // namespace syrinx
