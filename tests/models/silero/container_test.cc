// The container of Silero VAD: what it takes, and what a damaged or hostile file is told.
#include "models/silero/container.h"

#include "container_writer.h"

namespace syrinx::silero {
namespace {

using ::testing::HasSubstr;

const WrittenContainer& good() {
  static const WrittenContainer written = write_container(random_tensors(7));
  return written;
}

Error refused(std::span<const std::byte> bytes) {
  const auto tensors = parse_container(bytes, "vad.bin");
  EXPECT_FALSE(tensors.has_value());
  return tensors ? Error{} : tensors.error();
}

// The good file with one number replaced.
std::vector<std::byte> with_number(size_t offset, uint32_t value) {
  std::vector<std::byte> bytes = good().bytes;
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  return bytes;
}

TEST(SileroContainer, GivesEveryValueBack) {
  const Tensors written = random_tensors(7);
  const auto read = parse_container(good().bytes, "vad.bin");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->basis, written.basis);
  for (size_t i = 0; i < kEncoderLayers; ++i) {
    EXPECT_EQ(read->encoder[i].weight, written.encoder[i].weight);
    EXPECT_EQ(read->encoder[i].bias, written.encoder[i].bias);
  }
  EXPECT_EQ(read->input_weight, written.input_weight);
  EXPECT_EQ(read->recurrent_weight, written.recurrent_weight);
  EXPECT_EQ(read->input_bias, written.input_bias);
  EXPECT_EQ(read->recurrent_bias, written.recurrent_bias);
  EXPECT_EQ(read->output_weight, written.output_weight);
  EXPECT_EQ(read->output_bias, written.output_bias);
}

// Each field and each record boundary, and one byte either side.
TEST(SileroContainer, ACutFileIsRefused) {
  ASSERT_EQ(good().records.size(), 15u);
  std::vector<size_t> cuts = good().fields;
  cuts.insert(cuts.end(), good().records.begin(), good().records.end());
  for (const size_t cut : cuts) {
    for (const size_t size : {cut, cut + 1, cut == 0 ? 0 : cut - 1})
      EXPECT_EQ(refused(std::span(good().bytes).first(size)).code, Code::kDataLoss) << size;
  }
  EXPECT_EQ(refused(std::span(good().bytes).first(good().bytes.size() - 1)).code, Code::kDataLoss);
  EXPECT_THAT(refused(std::span(good().bytes).first(good().records.back())).message, HasSubstr("basis_buffer"));
}

TEST(SileroContainer, NumbersThatDifferAreRefused) {
  for (const size_t offset : good().fields) {
    // Texts and values are not numbers of the layout: the next test changes those.
    if (offset == 8 || (offset >= good().records[0] && offset != good().records[0])) continue;
    for (const uint32_t value : {0u, 5u, 0x7fffffffu, 0xffffffffu}) {
      uint32_t there = 0;
      std::memcpy(&there, good().bytes.data() + offset, sizeof there);
      if (value == there) continue;
      const Code code = refused(with_number(offset, value)).code;
      EXPECT_TRUE(code == Code::kDataLoss || code == Code::kUnsupported) << offset;
    }
  }
  EXPECT_EQ(refused(with_number(30, 256)).code, Code::kUnsupported);
  EXPECT_THAT(refused(with_number(30, 256)).message, HasSubstr("256 for window"));
  EXPECT_THAT(refused(with_number(42, 65)).message, HasSubstr("65 for input of an encoder layer"));
  std::vector<std::byte> other = good().bytes;
  other[8 + 7] = std::byte{'8'};  // silero-86k
  EXPECT_EQ(refused(other).code, Code::kUnsupported);
}

TEST(SileroContainer, RecordsThatDifferAreRefused) {
  const size_t first = good().records[0];  // rank, name length, type, three dimensions, name
  EXPECT_THAT(refused(with_number(first, 0xffffffff)).message, HasSubstr("4294967295 dimensions"));
  EXPECT_THAT(refused(with_number(first + 4, 0xffffffff)).message, HasSubstr("name of 4294967295 bytes"));
  EXPECT_THAT(refused(with_number(first + 8, 0)).message, HasSubstr("as type 0 [128, 129, 3]; it must be 1"));
  EXPECT_THAT(refused(with_number(first + 12, 0xffffffff)).message, HasSubstr("[128, 129, 4294967295]"));
  std::vector<std::byte> renamed = good().bytes;
  renamed[first + 24] = std::byte{'\n'};
  EXPECT_THAT(refused(renamed).message, HasSubstr("'?model.encoder.0.reparam_conv.weight' that the model does not"));
  std::vector<std::byte> twice = good().bytes;
  twice.insert(twice.end(), good().bytes.begin() + static_cast<ptrdiff_t>(good().records[1]),
               good().bytes.begin() + static_cast<ptrdiff_t>(good().records[2]));
  EXPECT_THAT(refused(twice).message, HasSubstr("encoder.0.reparam_conv.bias' twice"));
  std::vector<std::byte> longer = good().bytes;
  longer.push_back(std::byte{0});
  EXPECT_EQ(refused(longer).code, Code::kDataLoss);
  std::vector<std::byte> infinite = good().bytes;
  std::memset(infinite.data() + infinite.size() - 2, 0x7c, 2);  // the last value of the basis
  EXPECT_THAT(refused(infinite).message, HasSubstr("not a finite number"));
}

}  // namespace
}  // namespace syrinx::silero
