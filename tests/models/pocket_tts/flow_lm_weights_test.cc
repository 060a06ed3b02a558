// Checkpoints that are not what their configuration says.
#include "models/pocket_tts/flow_lm_weights.h"

#include "fixtures.h"

namespace syrinx::pocket {
namespace {

// The message that a change of the tensors or of the configuration brings.
struct Damage {
  TestModel model = test_model("english");
  Arrays file{"english/model.safetensors"};
  std::vector<TensorRef> tensors = file.tensors().tensors();

  TensorRef& at(const std::string& name) {
    return *std::find_if(tensors.begin(), tensors.end(), [&](const TensorRef& t) { return t.name == name; });
  }
  void erase(const std::string& name) {
    std::erase_if(tensors, [&](const TensorRef& t) { return t.name == name; });
  }
  Error read() const {
    const std::string bytes = write_safetensors(tensors);
    auto parsed = Safetensors::parse(std::as_bytes(std::span(bytes)), "damaged");
    EXPECT_TRUE(parsed.has_value());
    auto weights = read_flow_lm(*parsed, model.config, model.latent, model.voice_width, "damaged");
    EXPECT_FALSE(weights.has_value());
    return weights ? Error{} : weights.error();
  }
};

TEST(FlowLmWeights, EveryPublishedStructureIsRead) {
  for (const TestModel& model : test_models()) {
    const auto weights = load(model);
    ASSERT_NE(weights, nullptr) << model.name;
    EXPECT_EQ(weights->layers.size(), model.config.transformer.layers);
    EXPECT_EQ(weights->text_table.rows(), 400u);
    EXPECT_EQ(weights->text_table.width, weights->text_width());
  }
}

TEST(FlowLmWeights, MissingTensorsAreNamedTogether) {
  Damage damage;
  damage.erase("flow_lm.bos_emb");
  damage.erase("flow_lm.transformer.layers.1.norm2.bias");
  const Error error = damage.read();
  EXPECT_EQ(error.code, Code::kDataLoss);
  EXPECT_EQ(error.message,
            "'damaged' does not hold the language model that its configuration describes: flow_lm.bos_emb is missing; "
            "flow_lm.transformer.layers.1.norm2.bias is missing; the two must come from one download");
}

TEST(FlowLmWeights, ValuesThatAreNotFiniteAreRefused) {
  Damage damage;
  TensorRef& tensor = damage.at("flow_lm.out_norm.weight");
  const std::vector<std::byte> ones(tensor.bytes.size(), std::byte{0xFF});  // NaN in every format
  tensor.bytes = ones;
  EXPECT_NE(damage.read().message.find("flow_lm.out_norm.weight holds values that are not finite"), std::string::npos);
}

TEST(FlowLmWeights, EveryTensorIsNeeded) {
  const Damage whole;
  for (const TensorRef& tensor : whole.tensors) {
    if (!tensor.name.starts_with("flow_lm.")) continue;
    Damage damage;
    damage.erase(tensor.name);
    EXPECT_NE(damage.read().message.find(tensor.name + " is missing"), std::string::npos) << tensor.name;
  }
}

TEST(FlowLmWeights, OtherShapesAndTypesAreRefused) {
  Damage shape;
  shape.at("flow_lm.out_eos.weight").dims = {32, 1};
  EXPECT_NE(shape.read().message.find("flow_lm.out_eos.weight has the shape [32, 1], not [1, 32]"), std::string::npos);
  Damage type;
  type.at("flow_lm.out_norm.bias").dtype = DType::kI16;
  EXPECT_NE(type.read().message.find("flow_lm.out_norm.bias has the type i16, not bf16, f16 or f32"),
            std::string::npos);
}

TEST(FlowLmWeights, AnotherModelsConfigurationIsRefused) {
  Damage shorter;  // one layer fewer than the file has
  shorter.model.config.transformer.layers = 1;
  EXPECT_NE(shorter.read().message.find("flow_lm.transformer.layers.1.linear1.weight is not known"), std::string::npos);
  Damage longer;
  longer.model.config.transformer.layers = 24;
  const std::string message = longer.read().message;
  EXPECT_NE(message.find("flow_lm.transformer.layers.2.norm1.weight is missing"), std::string::npos);
  EXPECT_NE(message.find("and 170 more"), std::string::npos) << message;
  EXPECT_LT(message.size(), 700u);
  Damage drifting;
  drifting.model.config.head = HeadType::kDrifting;
  EXPECT_NE(drifting.read().message.find("flow_lm.flow_net.time_embed.0.freqs is not known"), std::string::npos);
}

TEST(FlowLmWeights, ImpossibleConfigurationsAreRefused) {
  const auto refused = [](auto&& change) {
    Damage damage;
    change(damage.model);
    const Error error = damage.read();
    EXPECT_EQ(error.code, Code::kInvalidArgument) << error.message;
    EXPECT_NE(error.message.find("'damaged': "), std::string::npos) << error.message;
  };
  refused([](TestModel& m) { m.config.transformer.width = 0; });
  refused([](TestModel& m) { m.config.transformer.width = size_t{1} << 40; });
  refused([](TestModel& m) { m.config.transformer.layers = 100000; });
  refused([](TestModel& m) { m.config.transformer.heads = 0; });
  refused([](TestModel& m) { m.config.transformer.key_heads = 0; });
  refused([](TestModel& m) { m.config.transformer.heads = 3; });
  refused([](TestModel& m) { m.config.transformer.heads = m.config.transformer.key_heads = 32; });  // of size 1
  refused([](TestModel& m) { m.config.transformer.max_period = 0.0f; });
  refused([](TestModel& m) { m.config.text_rank = size_t{1} << 40; });
  refused([](TestModel& m) { m.config.text_bins = size_t{1} << 40; });
  refused([](TestModel& m) { m.config.condition = 16; });
  refused([](TestModel& m) { m.config.head_depth = 0; });
  refused([](TestModel& m) { m.latent = 0; });
}

}  // namespace
}  // namespace syrinx::pocket
