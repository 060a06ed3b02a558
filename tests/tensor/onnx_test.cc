#include "tensor/onnx.h"

#include "../base/protobuf_message.h"
#include "files.h"

namespace syrinx {
namespace {

using test::Message;

std::string model(const std::string& graph) { return Message().text(7, graph).bytes; }
std::string with_tensor(const Message& tensor) { return model(Message().text(5, tensor.bytes).bytes); }
std::string with_node(const Message& node) { return model(Message().text(1, node.bytes).bytes); }

TEST(Onnx, ReadsFilesOfOnnx) {
  const std::string bytes = test::read_data("wired.onnx");
  const auto file = OnnxFile::parse(test::as_bytes(bytes), "wired");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->producer(), "tensor_files");
  const Json expected = test::expected_tensors("wired.onnx");
  EXPECT_EQ(file->tensors().size(), expected.object()->size());
  for (const JsonMember& member : *expected.object()) {
    const TensorRef* const tensor = file->find(member.key);
    ASSERT_NE(tensor, nullptr) << member.key;
    test::expect_tensor(member, tensor->dtype, tensor->dims, to_f32(tensor->bytes, tensor->dtype));
  }
  EXPECT_EQ(file->inputs(), std::vector<std::string>{"x"});
  EXPECT_EQ(file->outputs(), std::vector<std::string>{"z"});
}

TEST(Onnx, ReadsTheWiring) {
  const std::string bytes = test::read_data("wired.onnx");
  const auto file = OnnxFile::parse(test::as_bytes(bytes), "wired");
  ASSERT_TRUE(file.has_value());
  ASSERT_EQ(file->nodes().size(), 3u);
  const OnnxNode* const conv = file->producer_of("z");
  ASSERT_NE(conv, nullptr);
  EXPECT_EQ(conv->op_type, "Conv");
  EXPECT_EQ(conv->name, "/net/conv/Conv");
  EXPECT_EQ(conv->inputs, (std::vector<std::string>{"y", "c", ""}));
  EXPECT_EQ(conv->attribute("group")->whole, 2);
  EXPECT_EQ(conv->attribute("alpha")->real, 0.5f);
  EXPECT_EQ(conv->attribute("auto_pad")->text, "SAME_UPPER");
  EXPECT_EQ(conv->attribute("kernel_shape")->wholes, std::vector<int64_t>{3});
  EXPECT_EQ(conv->attribute("none"), nullptr);
  EXPECT_EQ(file->producer_of("x"), nullptr);
  EXPECT_EQ(file->find("zzz"), nullptr);
}

TEST(Onnx, AcceptsNumbersThatAreNotPacked) {
  Message tensor;
  tensor.number(1, 2).number(1, 1).number(2, 1).text(8, "loose");
  tensor.fixed32(4, std::string("\0\0\x80\x3f", 4)).fixed32(4, std::string("\0\0\0\x40", 4));
  const std::string floats = with_tensor(tensor);
  const auto file = OnnxFile::parse(test::as_bytes(floats), "loose");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  const TensorRef* const found = file->find("loose");
  EXPECT_EQ(found->dims, (std::vector<size_t>{2, 1}));
  EXPECT_EQ(to_f32(found->bytes, found->dtype), (std::vector<float>{1, 2}));
  const std::string wholes =
      with_tensor(Message().number(1, 2).number(2, 7).number(7, 5).number(7, UINT64_MAX).text(8, "i"));
  const auto other = OnnxFile::parse(test::as_bytes(wholes), "loose");
  ASSERT_TRUE(other.has_value()) << other.error().message;
  EXPECT_EQ(*to_i64(other->find("i")->bytes, DType::kI64), (std::vector<int64_t>{5, -1}));
}

TEST(Onnx, LeavesOutTensorsOfTexts) {
  const std::string bytes = with_tensor(Message().number(1, 1).number(2, 8).text(6, "word").text(8, "s"));
  const auto file = OnnxFile::parse(test::as_bytes(bytes), "texts");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_TRUE(file->tensors().empty());
}

TEST(Onnx, RefusesExternalData) {
  const std::string bytes = test::read_data("external.onnx");
  const auto file = OnnxFile::parse(test::as_bytes(bytes), "external.onnx");
  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().code, Code::kUnsupported);
  EXPECT_NE(file.error().message.find("another file"), std::string::npos);
}

TEST(Onnx, RefusesMalformedFiles) {
  const auto twice = [](const std::string& part) { return part + part; };
  const std::string scalar = Message().number(2, 1).text(8, "t").text(9, "1234").bytes;
  const std::string node = Message().text(2, "out").bytes;
  struct Case {
    std::string file;
    Code code;
  };
  const Case cases[] = {
      {"", Code::kDataLoss},                                                         // no graph
      {"\x80", Code::kDataLoss},                                                     // half a tag
      {std::string(11, '\xff'), Code::kDataLoss},                                    // tag too long
      {std::string("\0\0", 2), Code::kDataLoss},                                     // field 0
      {"\x3b", Code::kDataLoss},                                                     // group
      {"\x3a\x7f", Code::kDataLoss},                                                 // longer than the file
      {"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", Code::kDataLoss},             // 2^64 - 1 bytes
      {"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", Code::kDataLoss},             // beyond 64 bits
      {twice(model("")), Code::kDataLoss},                                           // two graphs
      {model(Message().text(15, "").bytes), Code::kUnsupported},                     // sparse
      {model(twice(Message().text(5, scalar).bytes)), Code::kDataLoss},              // same name
      {model(twice(Message().text(1, node).bytes)), Code::kDataLoss},                // same output
      {with_tensor(Message().number(1, UINT64_MAX).number(2, 1)), Code::kDataLoss},  // dims
      {with_tensor(Message().number(1, 1 << 30).number(1, 1 << 30).number(2, 1)), Code::kDataLoss},
      {with_tensor(Message().text(1, std::string(9, '\1')).number(2, 1)), Code::kDataLoss},  // rank 9
      {with_tensor(Message().text(1, "\x80").number(2, 1)), Code::kDataLoss},
      {with_tensor(Message().text(1, "\3").number(2, 1).text(9, "12345678")), Code::kDataLoss},  // 3 * 4 != 8
      {with_tensor(Message().text(1, "\3").number(2, 1).text(9, "1234567")), Code::kDataLoss},
      {with_tensor(Message().text(1, "\3").number(2, 7).text(7, "\1\2")), Code::kDataLoss},  // 2 of 3
      {with_tensor(Message().text(1, "\1").number(2, 7).text(7, "\1\2")), Code::kDataLoss},  // 2 of 1
      {with_tensor(Message().text(1, "\1").number(2, 7).number(7, 1).number(7, 1)), Code::kDataLoss},
      {with_tensor(Message().number(2, 1).number(14, 1)), Code::kUnsupported},    // external
      {with_tensor(Message().text(8, std::string(5000, 'n'))), Code::kDataLoss},  // long name
      {with_node(Message().number(3, 7)), Code::kDataLoss},                       // name is a number
      {with_node(Message().number(5, 7)), Code::kDataLoss},                       // attribute too
      {with_node(Message().text(5, Message().text(8, "\x80").bytes)), Code::kDataLoss},
      {with_node(Message().fixed64(9, "1234567")), Code::kDataLoss},  // cut off
  };
  for (const Case& hostile : cases) {
    const auto file = OnnxFile::parse(test::as_bytes(hostile.file), "hostile");
    ASSERT_FALSE(file.has_value()) << testing::PrintToString(hostile.file);
    EXPECT_EQ(file.error().code, hostile.code) << testing::PrintToString(hostile.file) << file.error().message;
    EXPECT_NE(file.error().message.find("hostile"), std::string::npos);
  }
}

TEST(Onnx, BoundsTheNumberOfThings) {
  const auto repeated = [](int field, const std::string& part, size_t times) {
    const std::string one = Message().text(field, part).bytes;
    std::string out;
    for (size_t i = 0; i < times; ++i) out += one;
    return out;
  };
  const auto code = [](const std::string& bytes) {
    const auto file = OnnxFile::parse(test::as_bytes(bytes), "many");
    return file ? Code::kInternal : file.error().code;
  };
  EXPECT_EQ(code(model(repeated(1, "", OnnxFile::kMaxNodes + 1))), Code::kLimitExceeded);
  EXPECT_EQ(code(model(repeated(5, Message().number(2, 1).text(9, "1234").bytes, OnnxFile::kMaxTensors + 1))),
            Code::kLimitExceeded);
  EXPECT_EQ(code(model(repeated(11, "", 65537))), Code::kLimitExceeded);
  EXPECT_EQ(code(with_node({repeated(1, "", 65537)})), Code::kLimitExceeded);
  EXPECT_EQ(code(with_node({repeated(5, "", 65537)})), Code::kLimitExceeded);
}

TEST(Onnx, SurvivesEveryTruncationAndFlip) {
  const auto read = [](std::span<const std::byte> bytes) {
    const auto file = OnnxFile::parse(bytes, "hostile");
    if (file)
      for (const TensorRef& tensor : file->tensors()) to_f32(tensor.bytes, tensor.dtype);
  };
  test::sweep_hostile(test::read_data("wired.onnx"), read);
  test::sweep_hostile(test::read_data("external.onnx"), read);
}

}  // namespace
}  // namespace syrinx
