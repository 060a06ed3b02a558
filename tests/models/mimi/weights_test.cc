// Faults of a checkpoint or a configuration, and their messages.
#include "models/mimi/weights.h"

#include <functional>
#include <limits>

#include "small_models.h"

namespace syrinx::mimi {
namespace {

// The error of loading english's decoder after `damage` to its tensors.
Error error_of(const std::function<void(std::vector<TensorRef>&)>& damage) {
  const TensorFile file("english/model.safetensors");
  std::vector<TensorRef> tensors = file.tensors().tensors();
  damage(tensors);
  const std::string bytes = write_safetensors(tensors);
  auto parsed = Safetensors::parse(std::as_bytes(std::span(bytes)), "damaged");
  EXPECT_TRUE(parsed.has_value()) << parsed.error().message;
  auto weights = DecoderWeights::load(*parsed, "damaged", config_of("english"));
  EXPECT_FALSE(weights.has_value());
  return weights ? Error{} : weights.error();
}

TensorRef& named(std::vector<TensorRef>& tensors, const std::string& name) {
  const auto at = std::find_if(tensors.begin(), tensors.end(), [&](const TensorRef& t) { return t.name == name; });
  EXPECT_NE(at, tensors.end()) << name;
  return at == tensors.end() ? tensors.front() : *at;
}

TEST(MimiWeights, MissingTensorsAreNamedTogether) {
  const Error error = error_of([](std::vector<TensorRef>& tensors) {
    std::erase_if(tensors, [](const TensorRef& t) {
      return t.name == "mimi.decoder.model.5.convtr.bias" || t.name == "mimi.quantizer.output_proj.weight";
    });
  });
  EXPECT_EQ(error.code, Code::kDataLoss);
  EXPECT_EQ(error.message,
            "'damaged' lacks 2 of the tensors that its configuration asks for: mimi.quantizer.output_proj.weight, "
            "mimi.decoder.model.5.convtr.bias");
  const Error many = error_of([](std::vector<TensorRef>& tensors) {
    std::erase_if(tensors, [](const TensorRef& t) { return t.name.starts_with("mimi.decoder"); });
  });
  EXPECT_NE(many.message.find(" lacks 42 of the tensors"), std::string::npos) << many.message;
  EXPECT_TRUE(many.message.ends_with(" and 34 more")) << many.message;
}

TEST(MimiWeights, ShapesTypesAndValuesAreChecked) {
  const std::string name = "mimi.decoder.model.3.block.1.conv.weight";
  Error error = error_of([&](std::vector<TensorRef>& tensors) {
    TensorRef& t = named(tensors, name);
    std::swap(t.dims[0], t.dims[1]);
  });
  EXPECT_EQ(error.code, Code::kDataLoss);
  EXPECT_EQ(error.message,
            "'damaged': tensor '" + name + "' has the shape [16, 8, 3], its configuration asks for [8, 16, 3]");
  error = error_of([&](std::vector<TensorRef>& tensors) { named(tensors, name).dtype = DType::kI16; });
  EXPECT_EQ(error.code, Code::kUnsupported);
  EXPECT_EQ(error.message, "'damaged': tensor '" + name + "' is stored as i16; weights are read from bf16, f16 or f32");
  const std::vector<float> broken(16, std::numeric_limits<float>::quiet_NaN());
  error = error_of([&](std::vector<TensorRef>& tensors) {
    TensorRef& t = named(tensors, "mimi.decoder.model.3.block.3.conv.bias");
    t.dtype = DType::kF32;
    t.bytes = std::as_bytes(std::span(broken));
  });
  EXPECT_EQ(error.code, Code::kDataLoss);
  EXPECT_EQ(error.message,
            "'damaged': tensor 'mimi.decoder.model.3.block.3.conv.bias' holds values that are not finite; the file is "
            "damaged");
}

TEST(MimiWeights, AnotherModelsConfigurationIsRefused) {
  const TensorFile file("english/model.safetensors");
  for (const char* other : {"english_18m", "english_7m", "flow_matching"}) {
    const auto decoder = DecoderWeights::load(file.tensors(), "english", config_of(other));
    ASSERT_FALSE(decoder.has_value());
    EXPECT_EQ(decoder.error().code, Code::kDataLoss) << decoder.error().message;
    const auto encoder = EncoderWeights::load(file.tensors(), "english", config_of(other));
    ASSERT_FALSE(encoder.has_value());
    EXPECT_EQ(encoder.error().code, Code::kDataLoss) << encoder.error().message;
  }
}

TEST(MimiConfig, DimensionsThatDoNotFitAreRefused) {
  EXPECT_TRUE(check(config_of("english")).has_value());
  const auto refused = [](const std::function<void(Config&)>& change, const char* part) {
    Config config = config_of("english");
    change(config);
    const Status status = check(config);
    ASSERT_FALSE(status.has_value()) << part;
    EXPECT_EQ(status.error().code, Code::kUnsupported);
    EXPECT_NE(status.error().message.find(part), std::string::npos) << status.error().message;
  };
  constexpr size_t kHuge = std::numeric_limits<size_t>::max();
  refused([](Config& c) { c.sample_rate = 0; }, "sample rate");
  refused([](Config& c) { c.frame_rate = 0; }, "frame rate");
  refused([](Config& c) { c.frame_rate = NAN; }, "frame rate");
  refused([](Config& c) { c.sample_rate = 24300; }, "multiple of 32");
  refused([](Config& c) { c.latent = kHuge; }, "latent");
  refused([](Config& c) { c.inner_width = 0; }, "inner_dim");
  refused([](Config& c) { c.outer_width = 15; }, "outer_dim");
  refused([](Config& c) { c.decoder.ratios = {}; }, "ratios");
  refused([](Config& c) { c.decoder.ratios = {7, 5, 4}; }, "hop");
  refused([](Config& c) { c.decoder.ratios = {0, 5, 4}; }, "ratio");
  refused([](Config& c) { c.decoder.ratios = {6, 5}; }, "hop");
  refused([](Config& c) { c.encoder.filters = kHuge; }, "filters");
  refused([](Config& c) { c.encoder.compress = 0; }, "compression");
  refused([](Config& c) { c.encoder.kernel = 18; }, "kernel");
  refused([](Config& c) { c.encoder.residual_layers = 5; }, "reach");
  refused([](Config& c) { c.encoder.width = 32; }, "equal");
  refused([](Config& c) { c.decoder_transformer.layers = kHuge; }, "layers");
  refused([](Config& c) { c.decoder_transformer.heads = 3; }, "heads");
  refused([](Config& c) { c.decoder_transformer.key_heads = 0; }, "key heads");
  refused([](Config& c) { c.decoder_transformer.heads = c.decoder_transformer.key_heads = 16; }, "even");
  refused([](Config& c) { c.decoder_transformer.window = 0; }, "window");
  refused([](Config& c) { c.decoder_transformer.max_period = 0.5f; }, "max_period");
}

}  // namespace
}  // namespace syrinx::mimi
