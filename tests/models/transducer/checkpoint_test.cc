#include "models/transducer/checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "fixtures.h"
#include "models/transducer/weight_reader.h"
#include "stored_zip.h"
#include "temp_folder.h"

namespace syrinx::transducer {
namespace {

namespace fs = std::filesystem;

TEST(TransducerCheckpoint, OpensEachFamily) {
  struct Case {
    const char* file;
    HeadKind kind;
    bool ctc;
    size_t mels, vocabulary;
  };
  for (const Case& c : {Case{"tdt.nemo", HeadKind::kTdt, false, 128, 24},
                        {"tdt_mlx", HeadKind::kTdt, false, 128, 24},
                        {"tdt_ctc.nemo", HeadKind::kTdt, true, 80, 24},
                        {"rnnt.nemo", HeadKind::kRnnt, false, 80, 24},
                        {"hybrid_streaming.nemo", HeadKind::kRnnt, true, 80, 24},
                        {"eou.nemo", HeadKind::kRnnt, false, 128, 26},
                        {"conformer_ctc.nemo", HeadKind::kCtc, true, 16, 24},
                        {"small.nemo", HeadKind::kRnnt, false, 16, 24},
                        {"medium.nemo", HeadKind::kTdt, false, 16, 24},
                        {"conformer_rnnt.nemo", HeadKind::kRnnt, false, 16, 24},
                        {"conformer_streaming.nemo", HeadKind::kRnnt, false, 16, 24},
                        {"tdt_v3.nemo", HeadKind::kTdt, false, 16, 8192},
                        {"rnnt_1_1b.nemo", HeadKind::kRnnt, false, 80, 24},
                        {"tdt_1_1b.nemo", HeadKind::kTdt, false, 80, 24},
                        {"tdt_ctc_1_1b.nemo", HeadKind::kTdt, true, 80, 24},
                        {"xxl.nemo", HeadKind::kRnnt, false, 80, 24},
                        {"nemotron.nemo", HeadKind::kRnnt, false, 128, 24},
                        {"fastconformer_ctc.nemo", HeadKind::kCtc, true, 80, 24},
                        {"prompt_multilingual.nemo", HeadKind::kRnnt, false, 16, 13088}}) {
    SCOPED_TRACE(c.file);
    const Checkpoint checkpoint = opened(c.file);
    EXPECT_EQ(checkpoint.config().decoder.kind, c.kind);
    EXPECT_EQ(checkpoint.config().decoder.ctc, c.ctc);
    EXPECT_EQ(checkpoint.config().encoder.mels, c.mels);
    EXPECT_EQ(checkpoint.config().decoder.vocabulary, c.vocabulary);
    EXPECT_EQ(checkpoint.vocabulary().size(), c.vocabulary);
    const size_t d = checkpoint.config().encoder.width;
    WeightReader reader(checkpoint, Precision::kF32);
    EXPECT_EQ(reader.values("encoder.layers.0.self_attn.linear_q.weight", {d, d}).size(), d * d);
    for (const char* prefix : {"encoder.", "decoder.", "joint.", "ctc_decoder.", "preprocessor.", "prompt_kernel."})
      reader.know_prefix(prefix);
    EXPECT_TRUE(reader.finish().has_value());
  }
}

TEST(TransducerCheckpoint, TurnsTheOtherLayoutRound) {
  const Checkpoint maker = opened("tdt.nemo"), other = opened("tdt_mlx");
  size_t compared = 0;
  for (const TensorRef& tensor : maker.tensors()) {
    if (tensor.name.ends_with("num_batches_tracked") || tensor.name.find("bias_") != std::string::npos) continue;
    const TensorRef* const found = other.find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(found->dims, tensor.dims) << tensor.name;
    EXPECT_EQ(to_f32(found->bytes, found->dtype), to_f32(tensor.bytes, tensor.dtype)) << tensor.name;
    ++compared;
  }
  EXPECT_EQ(compared, 75u);
  // The two biases of an LSTM come as their sum.
  const auto values = [](const Checkpoint& checkpoint, const std::string& name) {
    const TensorRef* const found = checkpoint.find("decoder.prediction.dec_rnn.lstm." + name);
    return found == nullptr ? std::vector<float>() : to_f32(found->bytes, found->dtype);
  };
  const std::vector<float> first = values(maker, "bias_ih_l1"), second = values(maker, "bias_hh_l1");
  const std::vector<float> sum = values(other, "bias_ih_l1"), zero = values(other, "bias_hh_l1");
  ASSERT_EQ(sum.size(), first.size());
  for (size_t i = 0; i < sum.size(); ++i) {
    EXPECT_EQ(sum[i], first[i] + second[i]);
    EXPECT_EQ(zero[i], 0.0f);
  }
}

TEST(TransducerCheckpoint, SpellsText) {
  const Checkpoint pieces = opened("eou.nemo");
  const Vocabulary& vocabulary = pieces.vocabulary();
  EXPECT_TRUE(vocabulary.is_bpe());
  EXPECT_TRUE(vocabulary.is_special(0));
  EXPECT_EQ(vocabulary.find("<EOU>"), 24);
  EXPECT_TRUE(vocabulary.is_special(24));
  EXPECT_TRUE(vocabulary.begins_word(3));
  EXPECT_FALSE(vocabulary.begins_word(4));
  EXPECT_EQ(vocabulary.find("none"), -1);
  // baa, _daa, eaa, _gaa: the first piece does not begin a word, specials say nothing.
  EXPECT_EQ(vocabulary.text(std::vector<int32_t>{1, 3, 4, 24, 6, 25, 99, -1}), "baa daaeaa gaa");
  EXPECT_EQ(vocabulary.text(std::vector<int32_t>{3}), "daa");
  // The last of many pieces too; the second file's configuration lists no labels.
  const Checkpoint many = opened("tdt_v3.nemo"), more = opened("prompt_multilingual.nemo");
  EXPECT_EQ(many.vocabulary().text(std::vector<int32_t>{8190, 8191}), "admbdm");
  EXPECT_EQ(many.vocabulary().find("bdm"), 8191);
  EXPECT_EQ(more.vocabulary().text(std::vector<int32_t>{13086, 13087, 13088}), "ijtjjt");
  const Checkpoint characters = opened("conformer_ctc.nemo");
  EXPECT_EQ(characters.vocabulary().text(std::vector<int32_t>{0, 8, 9, 0, 23, 1, 0}), "hi 'a");
  EXPECT_TRUE(characters.vocabulary().begins_word(0));
}

TEST(TransducerCheckpoint, TellsAllThatIsWrongAtOnce) {
  const Checkpoint checkpoint = opened("tdt.nemo");
  WeightReader reader(checkpoint, Precision::kF32);
  reader.know_prefix("decoder.");
  reader.know_prefix("encoder.layers.");
  reader.know_prefix("encoder.pre_encode.");
  EXPECT_TRUE(reader.values("encoder.nothing", {1}).empty());
  EXPECT_TRUE(reader.values("joint.enc.weight", {1, 2}).empty());
  reader.narrow("joint.pred", 3, 3, true);
  const Status status = reader.finish();
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::kDataLoss);
  for (const char* text : {"encoder.nothing is missing", "joint.enc.weight has the shape [16, 16], not [1, 2]",
                           "joint.pred.weight has the shape", "joint.joint_net.2.bias is not known"})
    EXPECT_NE(status.error().message.find(text), std::string::npos) << status.error().message;
}

// So many [64, 64] views, each transposed, of one storage.
std::string transposed_views(size_t count) {
  const auto text = [](const std::string& word) {
    return std::string("X") + static_cast<char>(word.size()) + std::string(3, '\0') + word;
  };
  std::string pickle = "\x80\x02}(";
  for (size_t i = 0; i < count; ++i) {
    pickle += text("t" + std::to_string(i)) + "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage");
    pickle += "ctorch\nFloatStorage\n" + text("0") + text("cpu") + std::string("M\x00\x10tQK\x00", 7);
    pickle += "K@K@\x86K\x01K@\x86\x89";
    pickle += "ccollections\nOrderedDict\n)RtR";
  }
  return test::StoredZip{.members = {{.name = "m/data.pkl", .data = pickle + "u."},
                                     {.name = "m/data/0", .data = std::string(4 * 64 * 64, '\0')}}}
      .make();
}

TEST(TransducerCheckpoint, TransposedTensorsAreLimited) {
  const TempFolder folder;
  fs::copy_file(data("tdt_mlx/config.json"), folder.file("config.json"));
  const auto opened_with = [&](size_t count) {
    std::ofstream(folder.file("model_weights.ckpt"), std::ios::binary) << transposed_views(count);
    return Checkpoint::open(folder.path());
  };
  const auto two = opened_with(2), many = opened_with(40);
  ASSERT_TRUE(two.has_value()) << two.error().message;
  EXPECT_EQ(two->tensors().size(), 2u);
  ASSERT_FALSE(many.has_value());
  EXPECT_EQ(many.error().code, Code::kLimitExceeded) << many.error().message;
}

// The same weights with another configuration are another model.
TEST(TransducerCheckpoint, KeyKnowsTheConfiguration) {
  const TempFolder folder;
  for (const char* const name : {"model.safetensors", "config.json"})
    fs::copy_file(data(std::string("tdt_mlx/") + name), folder.file(name));
  const auto key = [&] {
    const auto checkpoint = Checkpoint::open(folder.path());
    EXPECT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
    return checkpoint ? checkpoint->key("") : "";
  };
  const std::string before = key();
  EXPECT_EQ(key(), before);
  std::ofstream(folder.file("config.json"), std::ios::app) << "\n";
  EXPECT_NE(key(), before);
}

TEST(TransducerCheckpoint, RefusesVariancesBelowZero) {
  const Checkpoint checkpoint = opened("tdt.nemo");
  WeightReader reader(checkpoint, Precision::kF32);
  const std::string name = "encoder.layers.0.conv.batch_norm.";
  EXPECT_EQ(reader.variances(name + "running_var", 16).size(), 16u);
  EXPECT_TRUE(reader.variances(name + "running_mean", 16).empty());
  EXPECT_NE(reader.finish().error().message.find("running_mean holds a variance below 0"), std::string::npos);
}

TEST(TransducerCheckpoint, NamesOfTheFileCannotWriteToTheTerminal) {
  const TempFolder folder;
  fs::copy_file(data("tdt_mlx/config.json"), folder.file("config.json"));
  const std::string header =
      R"({"\u001b[2J)" + std::string(5000, 'n') + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::string size;
  test::StoredZip::put<uint64_t>(size, header.size());
  std::ofstream(folder.file("model.safetensors"), std::ios::binary) << size + header + std::string(4, '\0');
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  WeightReader reader(*checkpoint, Precision::kF32);
  const std::string message = reader.finish().error().message;
  EXPECT_NE(message.find("?[2Jnnn"), std::string::npos) << message;
  EXPECT_LT(message.size(), 1000u);
}

TEST(TransducerCheckpoint, RefusesOtherFiles) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("syrinx_transducer_{}", ::getpid());
  fs::remove_all(folder);
  fs::create_directories(folder);
  const auto code = [](const fs::path& path) {
    const auto checkpoint = Checkpoint::open(path.string());
    return checkpoint ? Code::kInternal : checkpoint.error().code;
  };
  EXPECT_EQ(code(folder), Code::kNotFound);
  EXPECT_EQ(code(folder / "none.nemo"), Code::kNotFound);
  fs::copy_file(data("tdt_mlx/model.safetensors"), folder / "model.safetensors");
  EXPECT_EQ(code(folder), Code::kNotFound);  // no configuration beside it
  fs::create_directory(folder / "config.json");
  EXPECT_EQ(code(folder), Code::kIo);  // it is there, but cannot be read
  fs::remove(folder / "config.json");
  std::ofstream(folder / "config.json") << "{\"target\": \"a.b.EncDecClassificationModel\"}";
  EXPECT_EQ(code(folder), Code::kUnsupported);
  EXPECT_NE(Checkpoint::open(folder.string()).error().message.find("'EncDecClassificationModel'"), std::string::npos);
  fs::remove(folder / "model.safetensors");
  fs::copy_file(data("tdt_mlx/config.json"), folder / "config.json", fs::copy_options::overwrite_existing);
  std::ofstream(folder / "a.nemo") << "neither a tar nor anything else";
  EXPECT_EQ(code(folder), Code::kLimitExceeded);  // its first bytes are no size of a header
  std::ofstream(folder / "b.nemo") << "";
  EXPECT_EQ(code(folder), Code::kInvalidArgument);  // which one?
  fs::remove_all(folder);
}

}  // namespace
}  // namespace syrinx::transducer
