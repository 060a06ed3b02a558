// Every stage of the codec's encoder against the maker's, which takes a recording as a whole.
#include "models/qwen_tts/codec_encoder.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "../allocation_count.h"
#include "clone_fixture.h"

namespace syrinx::qwen_tts {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kBound = 1e-5;
constexpr size_t kFrame = 1920;

// In pieces of so many frames.
std::vector<int32_t> codes_of(CodecEncoder& encoder, std::span<const float> samples, size_t piece = 1000) {
  auto state = encoder.make_state(samples.size());
  EXPECT_TRUE(state) << state.error().message;
  std::vector<int32_t> codes(encoder.frames(samples.size()) * encoder.codebooks());
  if (!state) return codes;
  for (size_t at = 0; at < samples.size(); at += piece * kFrame) {
    const std::span<const float> part = samples.subspan(at, std::min(piece * kFrame, samples.size() - at));
    encoder.encode(*state, part,
                   {&codes[at / kFrame * encoder.codebooks()], {encoder.frames(part.size()), encoder.codebooks()}});
  }
  return codes;
}

class QwenCodecStages : public testing::TestWithParam<std::pair<const char*, size_t>> {};
INSTANTIATE_TEST_SUITE_P(Lengths, QwenCodecStages,
                         testing::Values(std::pair("short", kShort), std::pair("long", kLong)));

TEST_P(QwenCodecStages, EveryStageAgrees) {
  const auto& [name, samples] = GetParam();
  ThreadTeam team(1);
  nn::Runner runner(team);
  CodecEncoder encoder(encoder_weights(), runner);
  SeenStages seen;
  encoder.set_probe(
      [&, prefix = std::string(name) + "."](std::string_view stage, size_t index, View<const float, 2> rows) {
        seen.add(prefix + std::string(stage) + (stage == "downsample" ? "" : "." + std::to_string(index)), rows);
      });
  EXPECT_EQ(codes_of(encoder, recording(samples)), maker().get<int32_t>(std::string(name) + ".codes"));
  EXPECT_EQ(count_within(seen.differences(maker().tensors()), kBound), 10u + 2 + 1);
}

TEST(QwenCodecEncoder, RecordingsEndAnywhere) {
  ThreadTeam team(1);
  nn::Runner runner(team);
  CodecEncoder encoder(encoder_weights(), runner);
  for (const size_t samples : {1, 700, 1919, 1920, 1921, 2400, 4799, 9601, 12345})
    EXPECT_EQ(codes_of(encoder, recording(samples)), maker().get<int32_t>("codes." + std::to_string(samples)))
        << samples;
}

// Rows of the downsampling, whose differences codes would hide, then the codes.
std::vector<float> results_of(std::span<const float> samples, size_t piece, int threads) {
  static const auto weights = encoder_weights();
  ThreadTeam team(threads);
  nn::Runner runner(team);
  CodecEncoder encoder(weights, runner);
  std::vector<float> results;
  encoder.set_probe([&](std::string_view stage, size_t, View<const float, 2> rows) {
    for (size_t i = 0; i < rows.extent(0) && stage == "downsample"; ++i)
      results.insert(results.end(), rows.row(i), rows.row(i) + rows.extent(1));
  });
  const std::vector<int32_t> codes = codes_of(encoder, samples, piece);
  encoder.set_probe({});
  EXPECT_EQ(codes_of(encoder, samples), codes);
  results.insert(results.end(), codes.begin(), codes.end());
  return results;
}

TEST(QwenCodecEncoder, PiecesAndThreadsChangeNothing) {
  const std::vector<float> all = recording(40 * kFrame);
  for (const size_t samples : {40 * kFrame, 25 * kFrame + 1, 24 * kFrame + 961}) {
    const std::span<const float> part = std::span(all).first(samples);
    const std::vector<float> whole = results_of(part, 1000, 1);
    for (const size_t piece : {1, 5, 24}) EXPECT_EQ(results_of(part, piece, 1), whole) << piece << " frames a call";
    for (const int threads : {2, 3}) EXPECT_EQ(results_of(part, 1000, threads), whole) << threads << " threads";
  }
}

TEST(QwenCodecEncoder, NothingIsAllocatedInAStep) {
  ThreadTeam team(2);
  nn::Runner runner(team);
  size_t jobs = 0;
  runner.set_between([&] { ++jobs; });
  CodecEncoder encoder(encoder_weights(), runner);
  const std::vector<float> samples = recording(30 * kFrame);
  std::vector<int32_t> codes(encoder.frames(samples.size()) * encoder.codebooks());
  auto state = encoder.make_state(samples.size());
  ASSERT_TRUE(state);
  const size_t before = allocation_count();
  encoder.encode(*state, samples, {codes.data(), {30, encoder.codebooks()}});
  EXPECT_EQ(allocation_count() - before, 0u);
  EXPECT_EQ(jobs, 10u + 3 + 3);  // three frames of the SEANet, twelve of the rest
}

TEST(QwenCodecEncoder, NothingFollowsAPartialFrame) {
  ThreadTeam team(1);
  nn::Runner runner(team);
  CodecEncoder encoder(encoder_weights(), runner);
  const std::vector<float> samples = recording(2 * kFrame);
  std::vector<int32_t> codes(encoder.codebooks());
  const View<int32_t, 2> frame{codes.data(), {1, codes.size()}};
  auto state = encoder.make_state(samples.size());
  ASSERT_TRUE(state);
  encoder.encode(*state, std::span(samples).first(kFrame), frame);
  EXPECT_FALSE(state->ended);
  encoder.encode(*state, std::span(samples).first(960), frame);
  EXPECT_TRUE(state->ended);
  encoder.encode(*state, {}, {codes.data(), {0, codes.size()}});
  EXPECT_DEATH(encoder.encode(*state, std::span(samples).first(960), frame), "960 samples behind the end");
}

TEST(QwenCodecEncoder, TooLongRecordingsAreRefused) {
  ThreadTeam team(1);
  nn::Runner runner(team);
  const CodecEncoder encoder(encoder_weights(), runner);
  EXPECT_TRUE(encoder.make_state(size_t{8191} * 960));
  const auto state = encoder.make_state(size_t{8191} * 960 + 1);
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code, Code::kLimitExceeded);
  EXPECT_THAT(state.error().message, HasSubstr("too long for the codec, at most 7863360 can be encoded"));
}

std::string error_of(const Tensors& tensors, Code code, const CodecConfig& config = codec_config()) {
  const auto weights = CodecEncoderWeights::load(tensors.source(), "codec", config);
  EXPECT_FALSE(weights);
  if (weights) return "";
  EXPECT_EQ(weights.error().code, code);
  return weights.error().message;
}

const std::string kAcoustic = "encoder.quantizer.acoustic_residual_vector_quantizer.";

TEST(QwenCodecEncoderWeights, UsedTensorsAreRead) {
  const Tensors tensors = Tensors::of_codec();
  ASSERT_NE(encoder_weights(tensors), nullptr);
  for (const std::string& name : tensors.unread("encoder."))
    EXPECT_TRUE(name.ends_with("initialized") || name.ends_with("output_proj.weight") ||
                name.starts_with(kAcoustic + "layers.15."))
        << name;
}

TEST(QwenCodecEncoderWeights, MissingAndMisshapedTensorsAreNamed) {
  Tensors tensors = Tensors::of_codec();
  tensors.remove("encoder.encoder.layers.7.block.1.conv.bias");
  tensors.remove("encoder.encoder_transformer.layers.1.self_attn.k_proj.weight");
  tensors.remove(kAcoustic + "layers.14.codebook.cluster_usage");
  tensors.reshape("encoder.downsample.conv.weight", {32, 128});
  tensors.reshape(kAcoustic + "input_proj.weight", {8, 32});
  const std::string error = error_of(tensors, Code::kDataLoss);
  EXPECT_THAT(error, HasSubstr("'codec' does not hold the codec that its configuration describes"));
  EXPECT_THAT(error, HasSubstr("encoder.encoder.layers.7.block.1.conv.bias is missing"));
  EXPECT_THAT(error, HasSubstr("encoder.encoder_transformer.layers.1.self_attn.k_proj.weight is missing"));
  EXPECT_THAT(error, HasSubstr("layers.14.codebook.cluster_usage is missing"));
  EXPECT_THAT(error, HasSubstr("encoder.downsample.conv.weight has the shape [32, 128], not [32, 32, 4]"));
  EXPECT_THAT(error, HasSubstr("input_proj.weight has the shape [8, 32], not [8, 32, 1]"));
}

TEST(QwenCodecEncoderWeights, CodebooksBeyondFloatsAreRefused) {
  Tensors tensors = Tensors::of_codec();
  tensors.fill(kAcoustic + "layers.2.codebook.embed_sum", 1e35f);
  tensors.fill(kAcoustic + "layers.2.codebook.cluster_usage", 0.0f);
  EXPECT_THAT(error_of(tensors, Code::kDataLoss),
              HasSubstr(kAcoustic + "layers.2.codebook.embed_sum' divided by its usage is not finite"));
}

TEST(QwenCodecEncoderWeights, UnusedCodebooksMayBeMissing) {
  Tensors tensors = Tensors::of_codec();
  tensors.remove(kAcoustic + "layers.15.codebook.embed_sum");
  EXPECT_NE(encoder_weights(tensors), nullptr);
}

TEST(QwenCodecEncoderWeights, LayersOfTooManyNumbersAreRefused) {
  CodecConfig config = codec_config();
  config.frame_samples = config.encoder.downsample = 30720;
  config.decoder.ratios = {8, 8};
  config.encoder.filters = 1024;
  config.encoder.ratios = {1, 1, 1, 1};  // channels double, rows do not become fewer
  EXPECT_THAT(error_of(Tensors::of_codec(), Code::kLimitExceeded, config),
              HasSubstr("numbers of a frame, at most 67108864"));
}

}  // namespace
}  // namespace syrinx::qwen_tts
