// Every stage of the decoder against the maker's package (docs/pocket_tts.md) on all small checkpoints; then the rules
// of a step.
#include "models/mimi/decoder.h"

#include <chrono>

#include "allocation_count.h"
#include "kernels/row_conv.h"
#include "small_models.h"

namespace syrinx::mimi {
namespace {

// In parts of a stage's maximum.  Two code paths of PyTorch are up to 3e-6 apart.
constexpr double kBound = 1e-5;
std::shared_ptr<const DecoderWeights> load(const std::string& name, Precision precision = Precision::kF32,
                                           bool gelu_erf = false) {
  const TensorFile file(name + "/model.safetensors");
  Config config = config_of(name);
  config.decoder_transformer.gelu_erf = gelu_erf;
  auto weights = DecoderWeights::load(file.tensors(), name, config, precision);
  EXPECT_TRUE(weights.has_value()) << weights.error().message;
  return std::make_shared<const DecoderWeights>(std::move(*weights));
}

struct Speaking {
  explicit Speaking(const std::string& name)
      : reference(name + "/reference.safetensors"), latents(reference.get("mimi.denormalised")) {
    const std::vector<size_t> dims = reference.dims("mimi.denormalised");
    frames = dims[0];
    width = dims[1];
  }
  // Frames [first, first + count) of the stream.
  View<const float, 2> rows(size_t first, size_t count) const {
    return {latents.data() + first * width, {count, width}};
  }
  std::vector<float> decode(Decoder& decoder, DecoderState& state, const std::vector<size_t>& calls) const {
    std::vector<float> samples(frames * 1920);
    size_t first = 0;
    for (const size_t count : calls) {
      decoder.decode(state, rows(first, count), std::span(samples).subspan(first * 1920, count * 1920));
      first += count;
    }
    EXPECT_EQ(first, frames);
    return samples;
  }

  TensorFile reference;
  std::vector<float> latents;
  size_t frames = 0, width = 0;
};

class MimiDecoder : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, MimiDecoder, ::testing::ValuesIn(kModels));

TEST_P(MimiDecoder, EveryStageAgrees) {
  const TensorFile reference(std::string(GetParam()) + "/reference.safetensors");
  ThreadTeam team(1);
  nn::Runner runner(team);
  const auto weights = load(GetParam());
  const auto stages = decoder_stages(weights, reference.tensors(), runner);
  EXPECT_EQ(count_within(stages, kBound), 2 + weights->config.decoder_transformer.layers + 7 + 1);
}

TEST_P(MimiDecoder, CallsAndThreadsDoNotChangeASample) {
  const Speaking s(GetParam());
  ASSERT_EQ(s.frames, 6u);
  for (const Precision precision : {Precision::kF32, Precision::kBf16}) {
    const auto weights = load(GetParam(), precision);
    std::vector<float> first;
    for (const int threads : {1, 2, 3}) {
      ThreadTeam team(threads);
      nn::Runner runner(team);
      Decoder decoder(weights, runner);
      for (const std::vector<size_t>& calls : {std::vector<size_t>{1, 1, 1, 1, 1, 1}, {6}, {2, 3, 1}, {0, 5, 1}}) {
        DecoderState state = decoder.make_state();
        const std::vector<float> samples = s.decode(decoder, state, calls);
        if (first.empty()) first = samples;
        ASSERT_EQ(samples, first) << threads << " threads, " << precision_name(precision);
        Decoder::reset(state);
        ASSERT_EQ(s.decode(decoder, state, {6}), first) << "after a reset";
      }
    }
  }
}

std::vector<float> samples_of(const std::string& name, Precision precision) {
  const Speaking s(name);
  ThreadTeam team(1);
  nn::Runner runner(team);
  Decoder decoder(load(name, precision), runner);
  DecoderState state = decoder.make_state();
  return s.decode(decoder, state, {6});
}

TEST_P(MimiDecoder, TheNarrowPrecisionsStayNear) {
  const char* const name = GetParam();
  expect_narrow_stays_near(name, reads_bf16(*load(name, Precision::kBf16)),
                           [&](Precision precision) { return samples_of(name, precision); });
}

TEST(MimiDecoderRules, WeightsOfF32AreMultipliedInF32) { expect_f32_weights_are_multiplied_in_f32<DecoderWeights>(); }

TEST(MimiDecoderRules, WithoutBf16InstructionsAllPrecisionsAreF32) {
  expect_f32_without_bf16_instructions([](Precision precision) { return samples_of("english", precision); });
}

// Histories are f32 or, where that is faster, bf16.
std::shared_ptr<const DecoderWeights> with_histories(const std::string& name, Precision precision) {
  auto weights = load(name, precision);
  EXPECT_EQ(reads_bf16(*weights), precision == Precision::kBf16 && kernels::bf16_rows_are_faster());
  return weights;
}

TEST(MimiDecoderRules, StreamsDoNotMeet) {
  const Speaking s("english_7m");
  ThreadTeam team(1);
  nn::Runner runner(team);
  for (const Precision precision : {Precision::kF32, Precision::kBf16}) {
    Decoder decoder(with_histories("english_7m", precision), runner);
    DecoderState alone = decoder.make_state(), one = decoder.make_state(), other = decoder.make_state();
    const std::vector<float> want = s.decode(decoder, alone, {6});
    std::vector<float> samples(6 * 1920), noise(1920);
    for (size_t i = 0; i < 6; ++i) {
      decoder.decode(one, s.rows(i, 1), std::span(samples).subspan(i * 1920, 1920));
      decoder.decode(other, s.rows(5 - i, 1), noise);
    }
    EXPECT_EQ(samples, want) << precision_name(precision);
  }
}

TEST(MimiDecoderRules, StreamsTogetherKeepTheirBits) {
  const Speaking s("english_7m");
  for (const Precision precision : {Precision::kF32, Precision::kBf16}) {
    const auto weights = with_histories("english_7m", precision);
    for (const int threads : {1, 2}) {
      ThreadTeam team(threads);
      nn::Runner runner(team);
      Decoder alone(weights, runner), together(weights, runner, 3);
      std::vector<DecoderState> apart, joined;
      for (size_t n = 0; n < 3; ++n) {
        apart.push_back(alone.make_state());
        joined.push_back(together.make_state());
      }
      for (size_t i = 0; i < s.frames; ++i) {
        std::vector<float> want(3 * 1920), samples(3 * 1920);
        std::vector<Decoder::Frame> frames;
        for (size_t n = 0; n < 3 - i % 2; ++n) {  // the third stream has every other frame
          const size_t frame = (i + n) % s.frames;
          alone.decode(apart[n], s.rows(frame, 1), std::span(want).subspan(n * 1920, 1920));
          frames.push_back({.state = &joined[n],
                            .latent = {s.rows(frame, 1).data(), s.width},
                            .samples = std::span(samples).subspan(n * 1920, 1920)});
        }
        together.decode(frames);
        ASSERT_EQ(samples, want) << precision_name(precision) << ", frame " << i;
      }
    }
  }
}

// One member works from the start, the other comes `delay_us` later.
std::vector<float> joined_late(Decoder& decoder, ThreadTeam& team, const Speaking& s, int delay_us) {
  DecoderState state = decoder.make_state();
  std::vector<float> samples(s.frames * 1920);
  for (size_t i = 0; i < s.frames; ++i) {
    decoder.crew().reset();
    const Decoder::Frame frame{.state = &state,
                               .latent = {s.rows(i, 1).data(), s.width},
                               .samples = std::span(samples).subspan(i * 1920, 1920)};
    decoder.begin_frames({&frame, 1});
    team.run([&](int member) {
      const auto work = [&](nn::Crew::Seat seat) {
        decoder.work_at_frames(seat);
        return seat;
      };
      if (member == 0) return decoder.crew().leave(work(decoder.crew().first(member)));
      const auto start = std::chrono::steady_clock::now();
      while (std::chrono::steady_clock::now() - start < std::chrono::microseconds(delay_us)) continue;
      work(decoder.crew().join(member));
    });
    decoder.end_frames();
  }
  return samples;
}

TEST(MimiDecoderRules, JoiningMembersChangeNoSample) {
  const Speaking s("english_18m");
  ThreadTeam one(1), two(2);
  nn::Runner alone(one), together(two);
  for (const Precision precision : {Precision::kF32, Precision::kBf16}) {
    const auto weights = with_histories("english_18m", precision);
    Decoder first(weights, alone), second(weights, together);
    DecoderState state = first.make_state();
    const std::vector<float> want = s.decode(first, state, {6});
    for (const int delay_us : {0, 20, 50, 100, 200, 400})
      EXPECT_EQ(joined_late(second, two, s, delay_us), want) << delay_us << " us, " << precision_name(precision);
  }
}

TEST(MimiDecoderRules, NothingIsAllocatedInAStep) {
  for (const auto& [name, precision] : {std::pair("english", Precision::kF32), std::pair("english", Precision::kBf16),
                                        std::pair("english_2m", Precision::kBf16)}) {
    const Speaking s(name);
    ThreadTeam team(2);
    nn::Runner runner(team);
    Decoder decoder(load(name, precision), runner);
    DecoderState state = decoder.make_state();
    std::vector<float> samples(2 * 1920);
    const size_t before = allocation_count();
    for (size_t i = 0; i < 50; ++i) decoder.decode(state, s.rows(2 * (i % 3), 2), samples);
    EXPECT_EQ(allocation_count() - before, 0u);
    EXPECT_EQ(state.transformer.position, 1600u);
  }
}

TEST(MimiDecoderRules, TheOlderGeluIsAnotherOne) {
  const TensorFile reference("english/reference.safetensors"), model("english/model.safetensors");
  const std::vector<float> latents = reference.get("erf.step.latent");
  const std::vector<float> deviation = model.get("flow_lm.emb_std"), mean = model.get("flow_lm.emb_mean");
  const size_t width = deviation.size(), frames = latents.size() / width;
  std::vector<float> denormalised(latents.size()), samples(frames * 1920);
  for (size_t i = 0; i < latents.size(); ++i) denormalised[i] = latents[i] * deviation[i % width] + mean[i % width];
  const auto apart = [&](bool gelu_erf) {
    ThreadTeam team(1);
    nn::Runner runner(team);
    Decoder decoder(load("english", Precision::kF32, gelu_erf), runner);
    DecoderState state = decoder.make_state();
    SeenStages seen;
    decoder.set_probe(probe_into(seen, "erf.mimi"));
    decoder.decode(state, {denormalised.data(), {frames, width}}, samples);
    const auto stages = seen.differences(reference.tensors());
    EXPECT_EQ(stages.size(), 1u);
    return stages.at(0).worst;
  };
  EXPECT_LE(apart(true), kBound);
  EXPECT_GT(apart(false), kBound);
}

}  // namespace
}  // namespace syrinx::mimi
