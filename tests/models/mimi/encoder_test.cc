// Every stage of the encoder against the maker's package, which runs over the whole recording at once.
#include "models/mimi/encoder.h"

#include "allocation_count.h"
#include "kernels/dispatch.h"
#include "small_models.h"

namespace syrinx::mimi {
namespace {

constexpr double kBound = 1e-5;

// bf16 beside f32, over the latents.
constexpr double kLeastSnrDb = 44, kMostApart = 0.01;

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

// docs/pocket_tts.md, "What the narrow precisions cost".
TEST_P(MimiEncoder, TheNarrowPrecisionsStayNear) {
  const std::vector<float> f32 = latents_of(GetParam(), Precision::kF32);
  const std::vector<float> bf16 = latents_of(GetParam(), Precision::kBf16);
  EXPECT_EQ(latents_of(GetParam(), Precision::kInt8), bf16);
  EXPECT_EQ(latents_of(GetParam(), Precision::kInt4), bf16);
  ASSERT_EQ(reads_bf16(*load(GetParam(), Precision::kBf16)), kernels::bf16_rows_are_faster());
  if (!kernels::bf16_rows_are_faster()) {
    EXPECT_EQ(bf16, f32);
    return;
  }
  EXPECT_NE(bf16, f32);
  const double snr = snr_db(bf16, f32), worst = largest_difference(bf16, f32);
  EXPECT_GE(snr, kLeastSnrDb);
  EXPECT_LE(worst, kMostApart);
  std::printf("%s: bf16 beside f32: SNR %.1f dB, worst %.1e of the largest number\n", GetParam(), snr, worst);
}

TEST(MimiEncoderRules, WeightsOfF32AreMultipliedInF32) {
  const CodecInF32 english("english");
  const auto weights =
      EncoderWeights::load(english.tensors(), "english in f32", config_of("english"), Precision::kBf16);
  ASSERT_TRUE(weights.has_value()) << weights.error().message;
  EXPECT_FALSE(reads_bf16(*weights));
}

TEST(MimiEncoderRules, WithoutBf16InstructionsAllPrecisionsAreF32) {
  kernels::force_target_for_test(0, false);
  const std::vector<float> f32 = latents_of("english", Precision::kF32);
  const std::vector<float> bf16 = latents_of("english", Precision::kBf16);
  kernels::force_target_for_test(0, true);
  EXPECT_EQ(bf16, f32);
  EXPECT_EQ(latents_of("english", Precision::kF32), f32);
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
