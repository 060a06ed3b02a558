// Every stage of the encoder against the maker's package, which runs over the whole recording at once.
#include "models/mimi/encoder.h"

#include "allocation_count.h"
#include "small_models.h"

namespace syrinx::mimi {
namespace {

constexpr double kBound = 1e-5;

std::shared_ptr<const EncoderWeights> load(const std::string& name, Precision precision = Precision::kF32) {
  const TensorFile file(name + "/model.safetensors");
  auto weights = EncoderWeights::load(file.tensors(), name, config_of(name), precision);
  EXPECT_TRUE(weights.has_value()) << weights.error().message;
  return std::make_shared<const EncoderWeights>(std::move(*weights));
}

std::vector<float> voice() { return TensorFile("recordings.safetensors").get("voice.prepared"); }

class MimiEncoder : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, MimiEncoder, ::testing::ValuesIn(kModels));

TEST_P(MimiEncoder, EveryStageAgrees) {
  const TensorFile reference(std::string(GetParam()) + "/reference.safetensors");
  const std::vector<float> samples = voice();
  ThreadTeam team(1);
  nn::Runner runner(team);
  const auto weights = load(GetParam());
  ASSERT_NE(samples.size() % weights->config.frame_samples(), 0u) << "the last frame should be a part of one";
  const auto stages = encoder_stages(weights, samples, reference.tensors(), runner);
  EXPECT_EQ(count_within(stages, kBound), 8 + weights->config.encoder_transformer.layers + 1);
}

TEST_P(MimiEncoder, PiecesAndThreadsDoNotChangeALatent) {
  const std::vector<float> samples = voice();
  for (const Precision precision : {Precision::kF32, Precision::kBf16}) {
    const auto weights = load(GetParam(), precision);
    std::vector<float> first;
    for (const int threads : {1, 2}) {
      ThreadTeam team(threads);
      nn::Runner runner(team);
      Encoder encoder(weights, runner);
      EncoderState state = encoder.make_state();
      const size_t width = encoder.config().inner_width;
      for (const size_t piece : {1, 2, 100}) {  // frames a call
        std::vector<float> latents(encoder.frames(samples.size()) * width);
        Encoder::reset(state);
        size_t row = 0;
        for (size_t at = 0; at < samples.size(); at += piece * 1920) {
          const auto part = std::span(samples).subspan(at, std::min(piece * 1920, samples.size() - at));
          const size_t count = encoder.frames(part.size());
          encoder.encode(state, part, {latents.data() + row * width, {count, width}});
          row += count;
        }
        if (first.empty()) first = latents;
        ASSERT_EQ(latents, first) << piece << " frames a call, " << threads << " threads, "
                                  << precision_name(precision);
      }
    }
  }
}

std::vector<float> latents_of(const std::string& name, Precision precision) {
  const std::vector<float> samples = voice();
  ThreadTeam team(1);
  nn::Runner runner(team);
  Encoder encoder(load(name, precision), runner);
  EncoderState state = encoder.make_state();
  const size_t frames = encoder.frames(samples.size()), width = encoder.config().inner_width;
  std::vector<float> latents(frames * width);
  encoder.encode(state, samples, {latents.data(), {frames, width}});
  return latents;
}

TEST_P(MimiEncoder, TheNarrowPrecisionsStayNear) {
  const char* const name = GetParam();
  expect_narrow_stays_near(name, reads_bf16(*load(name, Precision::kBf16)),
                           [&](Precision precision) { return latents_of(name, precision); });
}

TEST(MimiEncoderRules, WeightsOfF32AreMultipliedInF32) { expect_f32_weights_are_multiplied_in_f32<EncoderWeights>(); }

TEST(MimiEncoderRules, WithoutBf16InstructionsAllPrecisionsAreF32) {
  expect_f32_without_bf16_instructions([](Precision precision) { return latents_of("english", precision); });
}

TEST(MimiEncoderRules, NothingIsAllocatedInAStep) {
  const std::vector<float> samples = voice();
  for (const Precision precision : {Precision::kF32, Precision::kBf16}) {
    ThreadTeam team(2);
    nn::Runner runner(team);
    Encoder encoder(load("english", precision), runner);
    EncoderState state = encoder.make_state();
    const size_t frames = encoder.frames(samples.size()), width = encoder.config().inner_width;
    std::vector<float> latents(frames * width);
    const size_t before = allocation_count();
    for (size_t i = 0; i < 15; ++i) encoder.encode(state, samples, {latents.data(), {frames, width}});
    EXPECT_EQ(allocation_count() - before, 0u);
  }
}

}  // namespace
}  // namespace syrinx::mimi
