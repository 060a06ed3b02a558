#include "tensor/ggml_type.h"

#include <set>

#include "files.h"
#include "tensor/gguf.h"
#include "tensor/safetensors.h"

namespace syrinx {
namespace {

// types.gguf and types.safetensors: tools/checkpoints/gguf_types.py, by ggml's own package.
TEST(GgmlType, EveryTypeMatchesMakersPackage) {
  const std::string stored = test::read_data("types.gguf"), values = test::read_data("types.safetensors");
  const auto file = GgufFile::parse(test::as_bytes(stored), "types.gguf");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  const auto wanted = Safetensors::parse(test::as_bytes(values), "types.safetensors");
  ASSERT_TRUE(wanted.has_value());
  ASSERT_EQ(file->tensors().size(), std::size(kAllGgmlTypes));
  std::set<GgmlType> types;
  for (const GgufTensor& tensor : file->tensors()) {
    SCOPED_TRACE(tensor.name);
    EXPECT_EQ(tensor.name, ggml_name(tensor.type));
    types.insert(tensor.type);
    const TensorRef* const want = wanted->find(tensor.name);
    ASSERT_NE(want, nullptr);
    EXPECT_EQ(tensor.dims, want->dims);
    std::vector<float> read(*element_count(tensor.dims));
    ggml_to_f32(tensor.bytes, tensor.type, read.data());
    EXPECT_EQ(read, to_f32(want->bytes, want->dtype));
  }
  EXPECT_EQ(types.size(), std::size(kAllGgmlTypes));
}

TEST(GgmlType, NumbersMatchFormat) {
  for (const GgmlType type : kAllGgmlTypes) {
    size_t numbers = 0;
    for (uint32_t number = 0; number < 100; ++number)
      if (find_ggml_type(number) == type) {
        EXPECT_EQ(ggml_number_name(number), ggml_name(type));
        ++numbers;
      }
    EXPECT_EQ(numbers, 1u) << ggml_name(type);
    EXPECT_EQ(plain_dtype(type).has_value(), ggml_block(type).weights == 1) << ggml_name(type);
  }
  EXPECT_EQ(ggml_number_name(10), "Q2_K");
  EXPECT_EQ(ggml_number_name(39), "MXFP4");
  EXPECT_EQ(ggml_number_name(4), std::nullopt);  // withdrawn from the format
  EXPECT_EQ(ggml_number_name(0xFFFFFFFF), std::nullopt);
}

}  // namespace
}  // namespace syrinx
