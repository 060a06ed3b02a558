// Weights read by names that are data: what a decoder computes with them lies within the twin's bounds, where the twin
// reads the weights that the test packed itself; faults are told by name.
#include "decoder_fixture.h"
#include "nn/weight_reader.h"

namespace syrinx::nn {
namespace {

DecoderNames checkpoint_names(const DecoderConfig& c, bool half_split, bool gate_bias = false) {
  const auto norm = [&](const std::string& name) {
    return DecoderNames::Norm{"layers.{}." + name + ".weight",
                              c.norm == Norm::kLayer ? "layers.{}." + name + ".bias" : ""};
  };
  const auto linear = [](const std::string& name, bool bias = true) {
    return DecoderNames::Linear{.weight = "layers.{}." + name + ".weight",
                                .bias = bias ? "layers.{}." + name + ".bias" : ""};
  };
  const bool gated = c.mlp == Mlp::kSwiGlu;
  return {.before = norm("before"),
          .after = norm("after"),
          .in = {linear("q_proj"), linear("k_proj"), linear("v_proj")},
          .out = linear("out"),
          .gate = linear("gate", gate_bias),
          .up = linear("up", !gated || gate_bias),
          .down = linear("down"),
          .query_norm = "layers.{}.q_norm",
          .key_norm = "layers.{}.k_norm",
          .attention_scale = "layers.{}.attention_scale",
          .mlp_scale = "layers.{}.mlp_scale",
          .cross_norm = norm("cross"),
          .cross_query = linear("cross_query"),
          .cross_key_value = {linear("cross_key_value")},
          .cross_out = linear("cross_out"),
          .half_split = half_split};
}

// The tensors of a fixture as a file.
class Source {
 public:
  explicit Source(const Maker& maker) {
    for (const auto& [name, tensor] : maker.tensors)
      tensors_[name] = {
          .name = name, .dtype = DType::kF32, .dims = tensor.dims, .bytes = std::as_bytes(std::span(tensor.values))};
  }
  TensorSource source() {
    return {.find = [this](std::string_view name) -> const TensorRef* {
      const auto found = tensors_.find(name);
      return found == tensors_.end() ? nullptr : &found->second;
    }};
  }
  void add(const std::string& name, const std::vector<float>& values) {
    tensors_[name] = {
        .name = name, .dtype = DType::kF32, .dims = {values.size()}, .bytes = std::as_bytes(std::span(values))};
  }
  void remove(const std::string& name) { tensors_.erase(name); }
  size_t unknown_to(const WeightReader& reader) const {
    return static_cast<size_t>(std::count_if(tensors_.begin(), tensors_.end(),
                                             [&](const auto& tensor) { return !reader.knows(tensor.first); }));
  }

 private:
  std::map<std::string, TensorRef, std::less<>> tensors_;
};

Case case_of(Norm norm, Mlp mlp, Precision precision, bool half_split) {
  Case test{.shape = shape_of(2, norm, Rotary::kInterleaved, mlp), .precision = precision, .half_split = half_split};
  test.shape.head_norm = norm == Norm::kRms;
  test.shape.layer_scale = mlp != Mlp::kSwiGlu;
  test.shape.cross = norm == Norm::kLayer;
  return test;
}

TEST(DecoderLoad, LoadedWeightsMatchTwin) {
  for (const Precision precision : kAllPrecisions) {
    for (const bool half_split : {false, true}) {
      for (const Mlp mlp : {Mlp::kSwiGlu, Mlp::kGelu}) {
        for (const Norm norm : {Norm::kRms, Norm::kLayer}) {
          const Fixture f(case_of(norm, mlp, precision, half_split));
          Source tensors(f.maker);
          WeightReader reader(tensors.source(), nullptr);
          // The fixture packs all of the feed-forward in 4 bits, load() by precision only wide ones.
          const PanelType narrow = panel_type(precision);
          const PanelType forward = precision == Precision::kInt4 ? PanelType::kInt4 : narrow;
          const DecoderNames names = checkpoint_names(f.shape, half_split);
          const DecoderWeights loaded =
              DecoderWeights::load(reader, f.shape, [&](size_t layer) { return numbered(names, layer); },
                                   {.attention = narrow, .up = forward, .down = forward});
          ASSERT_TRUE(reader.faults().empty()) << reader.faults().text();
          EXPECT_EQ(tensors.unknown_to(reader), 0u);
          Running run(f, 1);
          run.weights = &loaded;
          expect_within(run.all(0, {3, 1}), f.expected()[0], precision_name(precision));
        }
      }
    }
  }
}

TEST(DecoderLoad, PrecisionChoosesTypes) {
  EXPECT_EQ(decoder_types(Precision::kInt4, 1024).down, PanelType::kInt4);
  EXPECT_EQ(decoder_types(Precision::kInt4, 512).down, PanelType::kInt8Symmetric);
  EXPECT_EQ(decoder_types(Precision::kInt4, 512).up, PanelType::kInt4);
  EXPECT_EQ(decoder_types(Precision::kInt4, 1024).attention, PanelType::kInt8Symmetric);
  const Fixture f(case_of(Norm::kRms, Mlp::kSwiGlu, Precision::kBf16, true));
  Source tensors(f.maker);
  WeightReader reader(tensors.source(), nullptr);
  const DecoderWeights loaded =
      DecoderWeights::load(reader, f.shape, checkpoint_names(f.shape, true), Precision::kBf16);
  Running run(f, 1);
  run.weights = &loaded;
  expect_within(run.all(0, {1}), f.expected()[0], "bf16");
}

TEST(DecoderLoad, MissingTensorsAreNamed) {
  const Fixture f(case_of(Norm::kRms, Mlp::kSwiGlu, Precision::kInt8, true));
  for (const std::string name : {"layers.1.k_proj.weight", "layers.0.gate.weight", "layers.1.q_norm"}) {
    Source tensors(f.maker);
    tensors.remove(name);
    WeightReader reader(tensors.source(), nullptr);
    DecoderWeights::load(reader, f.shape, checkpoint_names(f.shape, true), Precision::kInt8);
    EXPECT_NE(reader.faults().text().find(name), std::string::npos) << reader.faults().text();
  }
}

// The fixture has no biases of gate and up: one of two that a model asks for is missing, or both.
TEST(DecoderLoad, MissingGateBiasIsNamed) {
  const Fixture f(case_of(Norm::kRms, Mlp::kSwiGlu, Precision::kInt8, true));
  const std::vector<float> bias(f.shape.hidden);
  for (const bool other : {false, true}) {
    Source tensors(f.maker);
    if (other) tensors.add("layers.0.up.bias", bias);
    WeightReader reader(tensors.source(), nullptr);
    DecoderWeights::load(reader, f.shape, checkpoint_names(f.shape, true, true), Precision::kInt8);
    EXPECT_NE(reader.faults().text().find("layers.0.gate.bias"), std::string::npos) << reader.faults().text();
  }
}

}  // namespace
}  // namespace syrinx::nn
