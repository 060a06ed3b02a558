// Every stage of the speaker encoder against the maker's.
#include "models/qwen_tts/speaker_encoder.h"

#include <gmock/gmock.h>

#include "clone_fixture.h"

namespace syrinx::qwen_tts {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kBound = 1e-5;

std::vector<float> x_vector_of(std::span<const float> samples, int threads, bool shares_team = false) {
  ThreadTeam team(threads);
  nn::Runner runner(team);
  size_t jobs = 0;
  if (shares_team) runner.set_between([&] { ++jobs; });
  SpeakerEncoder encoder(speaker_weights(), runner);
  std::vector<float> x_vector(encoder.width());
  const Status status = encoder.embed(samples, x_vector);
  EXPECT_TRUE(status.has_value()) << status.error().message;
  EXPECT_EQ(jobs > 0, shares_team);
  return x_vector;
}

TEST(QwenSpeakerEncoder, RecordingIsTheMakers) {
  const std::vector<float> samples = recording(), theirs = maker().get("samples");
  ASSERT_EQ(theirs.size(), 100u);
  for (size_t i = 0; i < theirs.size(); ++i) ASSERT_EQ(samples[40 * i], theirs[i]) << i;
}

class QwenSpeakerStages : public testing::TestWithParam<std::pair<const char*, size_t>> {};
INSTANTIATE_TEST_SUITE_P(Lengths, QwenSpeakerStages,
                         testing::Values(std::pair("short", kShort), std::pair("long", kLong)));

TEST_P(QwenSpeakerStages, EveryStageAgrees) {
  const auto& [name, samples] = GetParam();
  ThreadTeam team(1);
  nn::Runner runner(team);
  SpeakerEncoder encoder(speaker_weights(), runner);
  SeenStages seen;
  encoder.set_probe(
      [&, prefix = std::string(name) + "."](std::string_view stage, size_t index, View<const float, 2> rows) {
        seen.add(prefix + std::string(stage) + (stage == "block" ? "." + std::to_string(index) : ""), rows);
      });
  std::vector<float> x_vector(encoder.width());
  ASSERT_TRUE(encoder.embed(recording(samples), x_vector));
  seen.add(std::string(name) + ".x_vector", x_vector);
  EXPECT_EQ(count_within(seen.differences(maker().tensors()), kBound), 8u);
}

TEST(QwenSpeakerEncoder, ThreadsAndJobsChangeNothing) {
  const std::vector<float> samples = recording(kLong);
  const std::vector<float> alone = x_vector_of(samples, 1);
  EXPECT_EQ(x_vector_of(samples, 2), alone);
  EXPECT_EQ(x_vector_of(samples, 3), alone);
  EXPECT_EQ(x_vector_of(samples, 1, true), alone);
  EXPECT_EQ(x_vector_of(samples, 2, true), alone);
}

TEST(QwenSpeakerEncoder, ShortestRecordingIsAccepted) {
  ThreadTeam team(1);
  nn::Runner runner(team);
  SpeakerEncoder encoder(speaker_weights(), runner);
  std::vector<float> x_vector(encoder.width());
  EXPECT_EQ(encoder.least_samples(), 5 * 256u);  // four rows of the last block are mirrored
  const std::vector<float> samples = recording(encoder.least_samples());
  EXPECT_TRUE(encoder.embed(samples, x_vector));
  for (const float value : x_vector) EXPECT_TRUE(std::isfinite(value));
  const Status refused = encoder.embed(std::span(samples).first(samples.size() - 1), x_vector);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("1279 samples is too short for the speaker encoder, 1280 are needed"));
}

TEST(QwenSpeakerEncoder, LongRecordingsAreRefused) {
  ThreadTeam team(1);
  nn::Runner runner(team);
  SpeakerEncoder encoder(speaker_weights(), runner);
  std::vector<float> x_vector(encoder.width());
  const Status refused = encoder.embed(std::vector<float>(SpeakerEncoder::kMaxSamples + 1), x_vector);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kLimitExceeded);
  EXPECT_THAT(refused.error().message,
              HasSubstr("2880001 samples is too long for the speaker encoder, at most 2880000"));
}

std::string error_of(const Tensors& tensors, Code code, const SpeakerEncoderConfig& config = speaker_config()) {
  const auto weights = SpeakerWeights::load(tensors.source(), "base", config);
  EXPECT_FALSE(weights);
  if (weights) return "";
  EXPECT_EQ(weights.error().code, code);
  return weights.error().message;
}

TEST(QwenSpeakerWeights, EveryTensorIsRead) {
  const Tensors tensors = Tensors::of_base();
  ASSERT_NE(speaker_weights(tensors), nullptr);
  EXPECT_THAT(tensors.unread("speaker_encoder."), IsEmpty());
}

TEST(QwenSpeakerWeights, MissingAndMisshapedTensorsAreNamed) {
  Tensors tensors = Tensors::of_base();
  tensors.remove("speaker_encoder.blocks.2.res2net_block.blocks.3.conv.bias");
  tensors.remove("speaker_encoder.asp.tdnn.conv.bias");
  tensors.reshape("speaker_encoder.fc.weight", {96, 32, 1});
  const std::string error = error_of(tensors, Code::kDataLoss);
  EXPECT_THAT(error, HasSubstr("'base' does not hold the speaker encoder that its configuration describes"));
  EXPECT_THAT(error, HasSubstr("speaker_encoder.blocks.2.res2net_block.blocks.3.conv.bias is missing"));
  EXPECT_THAT(error, HasSubstr("speaker_encoder.asp.tdnn.conv.bias is missing"));
  EXPECT_THAT(error, HasSubstr("speaker_encoder.fc.weight has the shape [96, 32, 1], not [32, 96, 1]"));
}

TEST(QwenSpeakerWeights, OtherRatesAreRefused) {
  SpeakerEncoderConfig config = speaker_config();
  config.sample_rate = 16000;
  EXPECT_THAT(error_of(Tensors::of_base(), Code::kUnsupported, config),
              HasSubstr("sample_rate is 16000, only 24000 can be run"));
}

TEST(QwenSpeakerEncoder, WeightsBeyondFloatsAreTold) {
  Tensors tensors = Tensors::of_base();
  tensors.fill("speaker_encoder.fc.weight", 3e38f);
  ThreadTeam team(1);
  nn::Runner runner(team);
  SpeakerEncoder encoder(speaker_weights(tensors), runner);
  std::vector<float> x_vector(encoder.width());
  const Status status = encoder.embed(recording(kShort), x_vector);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kDataLoss);
  EXPECT_THAT(status.error().message, HasSubstr("numbers that are not finite"));
}

}  // namespace
}  // namespace syrinx::qwen_tts
