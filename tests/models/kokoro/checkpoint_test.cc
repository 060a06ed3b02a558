#include "models/kokoro/checkpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "models/kokoro/onnx_names.h"
#include "tensor/onnx.h"

namespace syrinx::kokoro {
namespace {

std::string data(const std::string& name) { return std::string(SYRINX_TEST_DATA) + "/kokoro/" + name; }

std::unique_ptr<Checkpoint> open(const std::string& path) {
  auto file = MappedFile::open(path);
  EXPECT_TRUE(file.has_value()) << file.error().message;
  auto checkpoint = Checkpoint::open(std::move(*file));
  EXPECT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  return checkpoint ? std::move(*checkpoint) : nullptr;
}

StoredWeight read(const Checkpoint& checkpoint, const std::string& name) {
  const auto shape = checkpoint.shape(name);
  EXPECT_TRUE(shape.has_value()) << name;
  auto weight = checkpoint.read(name, *shape);
  EXPECT_TRUE(weight.has_value()) << weight.error().message;
  return std::move(*weight);
}

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A file of the given bytes, gone when the test ends.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& bytes) {
    const int descriptor = ::mkstemp(path_.data());
    EXPECT_GE(descriptor, 0);
    ::close(descriptor);
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_ = testing::TempDir() + "/checkpoint_XXXXXX";
};

// The export holds every weight that the published file holds, in the same layout and to the last bit or so.
void expect_same_weights(const Checkpoint& published, const Checkpoint& exported) {
  size_t compared = 0, quantised = 0;
  for (const std::string& name : published.names()) {
    if (!exported.contains(name)) continue;
    const StoredWeight want = read(published, name);
    const StoredWeight got = read(exported, name);
    ASSERT_EQ(want.shape, got.shape) << name;
    quantised += got.quantised() ? 1 : 0;
    const std::vector<float> a = want.dequantised();
    const std::vector<float> b = got.dequantised();
    ASSERT_EQ(a.size(), b.size()) << name;
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_NEAR(a[i], b[i], 4e-7f * std::max(1.0f, std::abs(a[i]))) << name << " " << i;
    ++compared;
  }
  EXPECT_EQ(compared, exported.names().size());  // the export holds nothing that the published file lacks
  EXPECT_EQ(quantised, 197u);
}

TEST(KokoroCheckpoint, TheExportAndThePublishedFilesHoldTheSameWeights) {
  const auto onnx = open(data("tiny.onnx"));
  for (const char* name : {"tiny.pth", "tiny_parametrized.pth"}) {
    SCOPED_TRACE(name);
    const auto torch = open(data(name));
    ASSERT_TRUE(onnx && torch);
    expect_same_weights(*torch, *onnx);
  }
}

TEST(KokoroCheckpoint, NamesAreTheMakersInEverySource) {
  for (const char* file : {"tiny.onnx", "tiny.pth", "tiny_parametrized.pth"}) {
    const auto checkpoint = open(data(file));
    ASSERT_TRUE(checkpoint);
    for (const char* name : {"bert.embeddings.word_embeddings.weight",
                             "bert.embeddings.LayerNorm.bias",
                             "bert.encoder.embedding_hidden_mapping_in.weight",
                             "bert.encoder.albert_layer_groups.0.albert_layers.0.attention.query.weight",
                             "bert.encoder.albert_layer_groups.0.albert_layers.0.attention.LayerNorm.weight",
                             "bert.encoder.albert_layer_groups.0.albert_layers.0.full_layer_layer_norm.bias",
                             "bert.encoder.albert_layer_groups.0.albert_layers.0.ffn_output.bias",
                             "bert_encoder.weight",
                             "bert_encoder.bias",
                             "predictor.text_encoder.lstms.0.weight_ih_l0_reverse",
                             "predictor.text_encoder.lstms.1.fc.bias",
                             "predictor.lstm.bias_hh_l0",
                             "predictor.shared.weight_hh_l0",
                             "predictor.duration_proj.linear_layer.weight",
                             "predictor.F0.1.pool.weight",
                             "predictor.F0.1.pool.bias",
                             "predictor.F0_proj.weight",
                             "predictor.N_proj.bias",
                             "predictor.N.0.norm1.fc.weight",
                             "text_encoder.embedding.weight",
                             "text_encoder.cnn.2.0.weight",
                             "text_encoder.cnn.2.0.bias",
                             "text_encoder.cnn.1.1.gamma",
                             "text_encoder.lstm.weight_ih_l0",
                             "decoder.F0_conv.weight",
                             "decoder.N_conv.bias",
                             "decoder.asr_res.0.weight",
                             "decoder.encode.conv1x1.weight",
                             "decoder.decode.3.pool.weight",
                             "decoder.generator.ups.1.weight",
                             "decoder.generator.noise_convs.0.bias",
                             "decoder.generator.noise_res.1.adain2.2.fc.weight",
                             "decoder.generator.resblocks.4.convs1.2.weight",
                             "decoder.generator.resblocks.5.alpha2.2",
                             "decoder.generator.conv_post.bias",
                             "decoder.generator.m_source.l_linear.weight"})
      EXPECT_TRUE(checkpoint->contains(name)) << file << ": " << name;
    EXPECT_FALSE(checkpoint->contains("decoder.generator.conv_post.weight_v"));
    const auto names = checkpoint->names();
    EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  }
}

TEST(KokoroCheckpoint, QuantisedWeightsKeepTheirSevenBits) {
  const auto onnx = open(data("tiny.onnx"));
  ASSERT_TRUE(onnx);
  for (const std::string& name : onnx->names()) {
    const StoredWeight weight = read(*onnx, name);
    EXPECT_NE(weight.q.empty(), weight.f32.empty()) << name;
    for (const int8_t q : weight.q) ASSERT_TRUE(q >= -64 && q <= 64) << name;
    if (weight.quantised()) {
      EXPECT_TRUE(weight.scale.size() == 1 || weight.scale.size() == weight.shape[0]) << name;
    }
  }
  EXPECT_TRUE(read(*onnx, "decoder.encode.conv1.weight").quantised());
  EXPECT_EQ(read(*onnx, "bert_encoder.weight").scale.size(), read(*onnx, "bert_encoder.weight").shape[0]);
  EXPECT_EQ(read(*onnx, "bert_encoder.weight").zero, 0);
  EXPECT_FALSE(read(*onnx, "decoder.generator.ups.0.weight").quantised());
}

// Kernels rely on 7 bits; a file with more is read as real numbers instead.
TEST(KokoroCheckpoint, WiderWeightsBecomeReal) {
  std::string bytes = slurp(data("tiny.onnx"));
  const std::string conv = "decoder.encode.conv1.weight", linear = "bert_encoder.weight";
  const auto good = open(data("tiny.onnx"));
  ASSERT_TRUE(good);
  {
    const auto file = OnnxFile::parse(std::as_bytes(std::span<const char>(bytes)), "tiny");
    ASSERT_TRUE(file.has_value());
    for (const OnnxNode& node : file->nodes()) {
      const bool is_conv = node.name == "/decoder/decoder/encode/conv1/Conv_quant";
      if (!is_conv && node.name != "/encoder/bert_encoder/MatMul_quant") continue;
      const TensorRef* const weight = file->find(node.inputs[1]);
      ASSERT_NE(weight, nullptr);
      const size_t at = static_cast<size_t>(reinterpret_cast<const char*>(weight->bytes.data()) - bytes.data());
      bytes[at] = is_conv ? static_cast<char>(200) : static_cast<char>(-100);
    }
  }
  const TemporaryFile file(bytes);
  const auto wide = open(file.path());
  ASSERT_TRUE(wide);
  for (const std::string& name : {conv, linear}) {
    const StoredWeight before = read(*good, name);
    const StoredWeight after = read(*wide, name);
    ASSERT_TRUE(before.quantised());
    ASSERT_FALSE(after.quantised());
    const std::vector<float> a = before.dequantised();
    for (size_t i = 1; i < a.size(); ++i) ASSERT_FLOAT_EQ(a[i], after.f32[i]) << name << " " << i;
    const int stored = name == conv ? 200 - 64 : -100;
    EXPECT_FLOAT_EQ(after.f32[0], before.scale[0] * static_cast<float>(stored - before.zero)) << name;
  }
}

// So is one whose zero points have more.
TEST(KokoroCheckpoint, WiderZeroPointsMakeWeightsReal) {
  std::string bytes = slurp(data("tiny.onnx"));
  const StoredWeight before = read(*open(data("tiny.onnx")), "bert_encoder.weight");
  ASSERT_TRUE(before.quantised());
  const size_t rows = before.shape[0], columns = before.shape[1];
  std::string name;
  {
    const auto file = OnnxFile::parse(std::as_bytes(std::span<const char>(bytes)), "tiny");
    ASSERT_TRUE(file.has_value());
    for (const OnnxNode& node : file->nodes())
      if (node.name == "/encoder/bert_encoder/MatMul_quant") name = node.inputs.at(3);
  }
  // A zero a row as packed varints, then field 8, the name.
  const size_t at = bytes.find(std::string(rows, '\0') + '\x42' + static_cast<char>(name.size()) + name);
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, rows, std::string(rows, 'd'));
  const TemporaryFile file(bytes);
  const StoredWeight after = read(*open(file.path()), "bert_encoder.weight");
  ASSERT_FALSE(after.quantised());
  for (size_t i = 0; i < rows * columns; ++i)
    ASSERT_FLOAT_EQ(after.f32[i], before.scale[i / columns] * static_cast<float>(before.q[i] - 'd'));
}

TEST(KokoroCheckpoint, RefusesOtherShapesAndNames) {
  for (const char* file : {"tiny.onnx", "tiny.pth"}) {
    const auto checkpoint = open(data(file));
    ASSERT_TRUE(checkpoint);
    const auto shape = checkpoint->read("bert_encoder.bias", {7, 7});
    ASSERT_FALSE(shape.has_value());
    EXPECT_EQ(shape.error().code, Code::kDataLoss);
    EXPECT_NE(shape.error().message.find("bert_encoder.bias"), std::string::npos);
    EXPECT_NE(shape.error().message.find("[7, 7]"), std::string::npos);
    EXPECT_EQ(checkpoint->read("bert_encoder.wait", {1}).error().code, Code::kDataLoss);
    EXPECT_EQ(checkpoint->shape("bert_encoder.wait").error().code, Code::kDataLoss);
    EXPECT_EQ(checkpoint->path(), data(file));
  }
}

TEST(KokoroCheckpoint, HashesTheWholeFile) {
  const TemporaryFile abc("abc");
  auto file = MappedFile::open(data("tiny.onnx"));
  const auto hash = open(data("tiny.onnx"))->content_hash();
  ASSERT_TRUE(hash.has_value());
  EXPECT_EQ(hash->size(), 64u);
  EXPECT_EQ(*hash, *open(data("tiny.onnx"))->content_hash());
  EXPECT_NE(*hash, *open(data("tiny.pth"))->content_hash());
}

TEST(KokoroCheckpoint, RefusesOtherModelsByName) {
  const auto error = [](const std::string& path) {
    auto file = MappedFile::open(path);
    EXPECT_TRUE(file.has_value());
    const auto checkpoint = Checkpoint::open(std::move(*file));
    EXPECT_FALSE(checkpoint.has_value());
    return checkpoint ? Error{} : checkpoint.error();
  };
  const std::string tensors = std::string(SYRINX_TEST_DATA) + "/tensor/";
  EXPECT_EQ(error(tensors + "wired.onnx").code, Code::kUnsupported);
  EXPECT_EQ(error(tensors + "nested.pth").code, Code::kUnsupported);
  EXPECT_NE(error(tensors + "nested.pth").message.find("not of a Kokoro model"), std::string::npos);
  EXPECT_EQ(error(TemporaryFile("").path()).code, Code::kDataLoss);
  EXPECT_EQ(error(TemporaryFile("hello, this is text").path()).code, Code::kDataLoss);
}

// Every weight of whatever still opens must read or refuse, in memory of its own.
void open_hostile(const std::string& bytes) {
  const TemporaryFile file(bytes);
  auto mapped = MappedFile::open(file.path());
  ASSERT_TRUE(mapped.has_value());
  const auto checkpoint = Checkpoint::open(std::move(*mapped));
  if (!checkpoint) return;
  for (const std::string& name : (*checkpoint)->names()) {
    const auto weight = (*checkpoint)->read(name, *(*checkpoint)->shape(name));
    if (weight) (void)weight->dequantised();
  }
}

TEST(KokoroCheckpoint, SurvivesTruncationAndFlips) {
  for (const char* name : {"tiny.onnx", "tiny_parametrized.pth"}) {
    const std::string good = slurp(data(name));
    for (size_t cut = 0; cut < 20; ++cut) open_hostile(good.substr(0, good.size() * cut / 20));
    uint64_t state = 1;  // a fixed sequence of places, three flips each
    for (int round = 0; round < 60; ++round) {
      std::string bytes = good;
      for (int flip = 0; flip < 3; ++flip) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        bytes[(state >> 33) % bytes.size()] ^= static_cast<char>(1 + (state >> 25) % 255);
      }
      open_hostile(bytes);
    }
  }
}

TEST(KokoroNames, NodesNameTheirModules) {
  const std::pair<const char*, const char*> cases[] = {
      {"/encoder/text_encoder/cnn.0/cnn.0.0/Conv_quant", "text_encoder.cnn.0.0"},
      {"/decoder/decoder/asr_res/asr_res.0/Conv_quant", "decoder.asr_res.0"},
      {"/decoder/decoder/generator/resblocks.4/convs1.2/Conv_quant", "decoder.generator.resblocks.4.convs1.2"},
      {"/encoder/F0.0/conv1/Conv_quant", "predictor.F0.0.conv1"},
      {"/encoder/shared/LSTM_quant", "predictor.shared"},
      {"/encoder/N_proj/Conv_quant", "predictor.N_proj"},
      {"/encoder/bert_encoder/MatMul_quant", "bert_encoder"},
      {"/encoder/predictor/text_encoder/lstms.2/LSTM_quant", "predictor.text_encoder.lstms.2"},
      {"/kmodel/decoder/F0_conv/Conv", "decoder.F0_conv"},
      {"/bert_encoder/MatMul", "bert_encoder"},
      {"/bert/encoder/embedding_hidden_mapping_in/MatMul", "bert.encoder.embedding_hidden_mapping_in"},
      {"/encoder/MatMul_1", ""},
      {"SkipLayerNormalization_token_111", ""},
      {"", ""},
      {"///", ""}};
  for (const auto& [node, module] : cases) EXPECT_EQ(module_of_node(node), module) << node;
}

TEST(KokoroNames, InitialisersNameTheirParameters) {
  const std::pair<const char*, const char*> cases[] = {
      {"encoder.predictor.F0_proj.bias", "predictor.F0_proj.bias"},
      {"decoder.decoder.decode.3.pool.bias", "decoder.decode.3.pool.bias"},
      {"encoder.bert.embeddings.LayerNorm.weight", "bert.embeddings.LayerNorm.weight"},
      {"kmodel.predictor.lstm.weight_ih_l0", "predictor.lstm.weight_ih_l0"},
      {"decoder.encode.conv1.bias", "decoder.encode.conv1.bias"},
      {"onnx::MatMul_6547", ""},
      {"/encoder/bert/Constant_21_output_0", ""},
      {"speed", ""},
      {"", ""}};
  for (const auto& [initialiser, name] : cases) EXPECT_EQ(parameter_name(initialiser), name) << initialiser;
}

}  // namespace
}  // namespace syrinx::kokoro
