#include "tensor/ct2_file.h"

#include "ct2_bytes.h"
#include "files.h"

namespace syrinx {
namespace {

const std::vector<float> kNumbers = {1.5f, -2.0f, 0.25f, 8.0f, -0.5f, 3.0f};

std::vector<TensorRef> two_variables() {
  const auto bytes = std::as_bytes(std::span(kNumbers));
  return {{"encoder/weight", DType::kF32, {2, 3}, bytes},
          {"encoder/heads", DType::kI16, {}, bytes.first(2)},
          {"bytes", DType::kI8, {4}, bytes.subspan(4, 4)}};
}

Error error_of(const std::string& file) {
  const auto parsed = Ct2File::parse(test::as_bytes(file), "hostile");
  EXPECT_FALSE(parsed.has_value());
  return parsed ? Error{} : parsed.error();
}

TEST(Ct2File, ReadsVariablesAndAliases) {
  const std::string bytes = test::ct2_bytes(two_variables(), {{"decoder/weight", "encoder/weight"}});
  const auto file = Ct2File::parse(test::as_bytes(bytes), "good");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->specification(), "WhisperSpec");
  EXPECT_EQ(file->revision(), 3u);
  ASSERT_EQ(file->variables().size(), 3u);
  const TensorRef* const weight = file->find("encoder/weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->dims, (std::vector<size_t>{2, 3}));
  EXPECT_EQ(to_f32(weight->bytes, weight->dtype), kNumbers);
  EXPECT_EQ(file->find("decoder/weight"), weight);
  EXPECT_TRUE(file->find("encoder/heads")->dims.empty());
  EXPECT_EQ(file->find("bytes")->dtype, DType::kI8);
  EXPECT_EQ(file->find("encoder"), nullptr);
}

TEST(Ct2File, RefusesEveryTruncation) {
  const std::string bytes = test::ct2_bytes(two_variables(), {{"a", "bytes"}});
  for (size_t size = 0; size < bytes.size(); ++size) error_of(bytes.substr(0, size));
  EXPECT_EQ(error_of(bytes + "x").code, Code::kDataLoss);
}

TEST(Ct2File, RefusesSizesThatDoNotMatch) {
  std::vector<TensorRef> variables = two_variables();
  variables[0].dims = {3, 3};
  EXPECT_NE(error_of(test::ct2_bytes(variables)).message.find("does not fill its 24 bytes"), std::string::npos);
  variables[0].dims = {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF};
  EXPECT_EQ(error_of(test::ct2_bytes(variables)).code, Code::kDataLoss);
  variables[0].dims.assign(9, 1);
  EXPECT_EQ(error_of(test::ct2_bytes(variables)).code, Code::kLimitExceeded);
  variables = two_variables();
  variables[1].dtype = DType::kF64;  // no type of the format
  EXPECT_EQ(error_of(test::ct2_bytes(variables)).code, Code::kUnsupported);
  variables = two_variables();
  variables[1].name = "bytes";
  EXPECT_NE(error_of(test::ct2_bytes(variables)).message.find("twice"), std::string::npos);
  EXPECT_NE(error_of(test::ct2_bytes(two_variables(), {{"a", "b"}})).message.find("'b'"), std::string::npos);
  EXPECT_EQ(error_of(test::ct2_bytes(two_variables(), {{"bytes", "bytes"}})).code, Code::kDataLoss);
  variables = two_variables();
  variables[2].name.assign(2000, 'n');
  EXPECT_EQ(error_of(test::ct2_bytes(variables)).code, Code::kDataLoss);
  std::string older = test::ct2_bytes(two_variables());
  older[0] = 5;
  EXPECT_EQ(error_of(older).code, Code::kUnsupported);
  // A count that the file cannot hold is refused before anything is made for it.
  std::string many = test::ct2_bytes({});
  many[many.size() - 5] = '\x7f';
  EXPECT_NE(error_of(many).message.find("more than its"), std::string::npos);
}

}  // namespace
}  // namespace syrinx
