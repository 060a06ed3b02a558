// Refusals of packing and binding: weights that are not numbers, and packed caches with a good index but other
// contents.
#include "models/kokoro/archive.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

#include "models/kokoro/onnx_names.h"
#include "tensor/onnx.h"

namespace syrinx::kokoro {
namespace {

// As tiny.onnx, with one value of the f32 weight `name` replaced.
Result<std::shared_ptr<const Model>> load_with(const std::string& name, float value, Precision precision) {
  std::ifstream in(std::string(SYRINX_TEST_DATA) + "/kokoro/tiny.onnx", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const auto file = OnnxFile::parse(std::as_bytes(std::span<const char>(bytes)), "tiny");
  EXPECT_TRUE(file.has_value());
  bool found = false;
  const auto replace = [&](const TensorRef& tensor) {
    found = true;
    std::memcpy(&bytes[static_cast<size_t>(reinterpret_cast<const char*>(tensor.bytes.data()) - bytes.data())], &value,
                sizeof value);
  };
  for (const TensorRef& tensor : file->tensors())
    if (parameter_name(tensor.name) == name) replace(tensor);
  for (const OnnxNode& node : file->nodes())
    if (node.op_type == "ConvTranspose" && module_of_node(node.name) + ".weight" == name)
      replace(*file->find(node.inputs.at(1)));
  EXPECT_TRUE(found) << name;
  return Model::load(MappedFile::borrow(std::as_bytes(std::span<const char>(bytes)), "damaged.onnx"),
                     {.precision = precision, .cache_dir = ""});
}

TEST(KokoroArchive, RefusesWeightsThatAreNotFinite) {
  for (const Precision precision : {Precision::kF32, Precision::kInt8}) {
    for (const char* name : {"bert.embeddings.LayerNorm.weight", "decoder.encode.conv1.bias",
                             "decoder.generator.ups.0.weight", "predictor.F0.1.pool.weight"}) {
      for (const float value : {NAN, INFINITY, -INFINITY}) {
        const auto model = load_with(name, value, precision);
        ASSERT_FALSE(model.has_value()) << name;
        EXPECT_EQ(model.error().code, Code::kDataLoss);
        EXPECT_NE(model.error().message.find(name), std::string::npos) << model.error().message;
      }
      EXPECT_TRUE(load_with(name, 0.5f, precision).has_value()) << name;
    }
    EXPECT_FALSE(load_with("decoder.generator.resblocks.0.alpha1.0", 0.0f, precision).has_value());
  }
}

// The arrays of one int8 matrix of 40 columns, 6 channels and 3 taps, as a packed cache holds them.
struct Packed {
  struct Head {
    uint32_t type = 1;
    int32_t zero = 0;
    uint64_t columns = 40, channels = 6, taps = 3;
  };
  Head head;
  std::vector<std::byte> panels = std::vector<std::byte>(2 * 3 * 8 * 32);
  std::vector<float> bias = std::vector<float>(64), scale = bias;
  std::vector<int32_t> sum = std::vector<int32_t>(64);

  Status bind(bool keep_f32 = false) const {
    SYRINX_TRY(PackedFileWriter writer, PackedFileWriter::create("", "key"));
    SYRINX_TRY_VOID(writer.add_array("m", std::span(&head, 1)));
    SYRINX_TRY_VOID(writer.add("m.panels", panels));
    SYRINX_TRY_VOID(writer.add_array<float>("m.bias", bias));
    SYRINX_TRY_VOID(writer.add_array<float>("m.scale", scale));
    SYRINX_TRY_VOID(writer.add_array<int32_t>("m.sum", sum));
    SYRINX_TRY(const PackedFile file, writer.finish());
    BindArchive archive(file);
    PackedMatrix matrix;
    archive.matrix(matrix, {.key = "m",
                            .weights = {"w"},
                            .layout = WeightLayout::kConv,
                            .out = 40,
                            .in = 6,
                            .kernel = 3,
                            .keep_f32 = keep_f32});
    return archive.status();
  }
};

TEST(KokoroArchive, BindsOnlyShapesThatKernelsRead) {
  EXPECT_TRUE(Packed().bind().has_value());
  const auto refuses = [](const auto& damage) {
    Packed p;
    damage(p);
    const Status status = p.bind();
    return !status && status.error().code == Code::kDataLoss;
  };
  EXPECT_TRUE(refuses([](Packed& p) { p.panels.pop_back(); }));
  EXPECT_TRUE(refuses([](Packed& p) { p.bias.pop_back(); }));
  EXPECT_TRUE(refuses([](Packed& p) { p.scale.pop_back(); }));
  EXPECT_TRUE(refuses([](Packed& p) { p.sum.pop_back(); }));
  EXPECT_TRUE(refuses([](Packed& p) { p.head.columns = 41; }));
  EXPECT_TRUE(refuses([](Packed& p) { p.head.channels = 7; }));
  EXPECT_TRUE(refuses([](Packed& p) { p.head.taps = 1; }));
  EXPECT_TRUE(refuses([](Packed& p) { p.head.type = 0; })) << "panels of a quarter of the size";
  EXPECT_TRUE(refuses([](Packed& p) { p.head.type = 2; }));
  EXPECT_TRUE(refuses([](Packed& p) { p.head.zero = 65; }));
  // Several taps in int8 need the range of their input, which the layers that are always f32 do not take.
  EXPECT_FALSE(Packed().bind(true).has_value());
}

}  // namespace
}  // namespace syrinx::kokoro
