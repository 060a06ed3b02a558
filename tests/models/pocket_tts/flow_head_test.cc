// The head against the maker's arrays, part by part, for all four kinds; then the rules of its schedule.
#include "models/pocket_tts/flow_head.h"

#include "allocation_count.h"
#include "fixtures.h"
#include "models/pocket_tts/flow_lm.h"
#include "stages.h"

namespace syrinx::pocket {
namespace {

constexpr double kBound = 1e-5;

class FlowHeadParity : public ::testing::TestWithParam<TestModel> {};
INSTANTIATE_TEST_SUITE_P(All, FlowHeadParity, ::testing::ValuesIn(test_models()), name_of);

// The maker's hidden rows and noise go in, so that each frame stands for itself.
TEST_P(FlowHeadParity, EveryPart) {
  const TestModel& model = GetParam();
  const auto weights = load(model);
  const Arrays reference(model.name + "/reference.safetensors");
  ThreadTeam team(1);
  nn::Runner runner(team);
  auto schedule = make_schedule(*weights, model.evaluations);
  ASSERT_TRUE(schedule.has_value()) << schedule.error().message;
  FlowHead head(weights, *schedule, runner);
  ASSERT_EQ(head.evaluations(), model.evaluations);
  const auto stages = flow_head_stages(head, *weights, reference.tensors());
  EXPECT_EQ(count_within(stages, kBound), 4 + model.config.head_depth + weights->head.times.size());
}

TEST_P(FlowHeadParity, TimesOfEveryEvaluation) {
  const TestModel& model = GetParam();
  const auto weights = load(model);
  const Arrays reference(model.name + "/reference.safetensors");
  const auto& times = weights->head.times;
  for (size_t k = 0; k < 2; ++k) ASSERT_EQ(reference.has(fmt::format("step.time.{}", k)), k < times.size());
  const auto check = [&](const std::string& prefix, size_t evaluations) {
    for (size_t k = 0; k < times.size(); ++k) {
      std::vector<float> ours;
      for (size_t i = 0; i < evaluations; ++i) {
        const std::vector<float> one =
            time_embedding(times[k], static_cast<float>(i + k) / static_cast<float>(evaluations));
        ours.insert(ours.end(), one.begin(), one.end());
      }
      EXPECT_LE(relative(ours, reference.get(fmt::format("{}.time.{}", prefix, k))), kBound) << prefix << k;
    }
  };
  check("step", model.evaluations);
  if (reference.has("lsd3.time.0")) check("lsd3", 3);
}

TEST_P(FlowHeadParity, AFrameAllocatesNothing) {
  const TestModel& model = GetParam();
  const auto weights = load(model);
  ThreadTeam team(1);
  nn::Runner runner(team);
  FlowHead head(weights, *make_schedule(*weights, model.evaluations), runner);
  nn::Plane row;
  row.prepare(1, model.config.condition, kernels::Storage::kF32);
  std::vector<float> latent(model.latent, 0.5f);
  const size_t before = allocation_count();
  for (int i = 0; i < 50; ++i) sample_one(head, row.view(), latent, latent);
  EXPECT_EQ(allocation_count() - before, 0u);
}

// Rows are read and written to their own length: what lies beside them stays out of the result, and as it was.
TEST_P(FlowHeadParity, NeighboursOfARowDoNotCount) {
  const TestModel& model = GetParam();
  const auto weights = load(model);
  const Arrays reference(model.name + "/reference.safetensors");
  ThreadTeam team(1);
  nn::Runner runner(team);
  FlowHead head(weights, *make_schedule(*weights, model.evaluations), runner, 2);
  const size_t width = model.config.condition, latent = model.latent, room = 64;
  const auto sample = [&](float beside) {
    std::vector<float> hidden(width + 2 * room, beside), noise(latent + 2 * room, beside);
    std::vector<float> out(latent + 2 * room, beside);
    std::copy_n(reference.get("step.hidden").begin(), width, hidden.begin() + room);
    std::copy_n(reference.get("step.noise").begin(), latent, noise.begin() + room);
    const FlowHead::Stream stream{{&hidden[room], width}, {&noise[room], latent}, {&out[room], latent}};
    head.sample({&stream, 1});
    for (size_t i = 0; i < room; ++i) {
      EXPECT_EQ(std::isnan(out[i]), std::isnan(beside));
      EXPECT_EQ(std::isnan(out[room + latent + i]), std::isnan(beside));
    }
    return std::vector<float>(&out[room], &out[room] + latent);
  };
  const std::vector<float> plain = sample(0.0f), beside_nan = sample(NAN);
  EXPECT_EQ(plain, beside_nan);
  std::vector<float> want = reference.get("step.latent");
  want.resize(latent);
  EXPECT_LE(relative(plain, want), kBound);

  // A stream whose state went wrong, NaN from end to end, computed beside one that did not.
  std::vector<float> broken(width, NAN), hidden = reference.get("step.hidden"), noise = reference.get("step.noise");
  std::vector<float> lost(latent), kept(latent);
  const FlowHead::Stream both[] = {{broken, {noise.data(), latent}, lost},
                                   {{hidden.data(), width}, {noise.data(), latent}, kept}};
  head.sample(both);
  EXPECT_EQ(kept, plain);
  EXPECT_TRUE(std::isnan(lost[0]));
}

// Three evaluations a frame, on the language model's own states.
TEST(FlowHead, SeveralEvaluationsOfLsd) {
  const TestModel model = test_model("english");
  const auto weights = load(model);
  const Arrays reference("english/reference.safetensors");
  ThreadTeam team(2);
  nn::Runner runner(team);
  FlowLm flow(weights, runner);
  FlowHead head(weights, *make_schedule(*weights, 3), runner);
  FlowLmState state = *FlowLmState::make(*weights, 64);
  ASSERT_TRUE(flow.prefill_projected(matrix_view(reference.get("voice.projected"), 32), state).has_value());
  ASSERT_TRUE(flow.prefill_text(reference.get<int32_t>("text.ids"), state).has_value());
  std::vector<float> velocities, latents, latent(32);
  head.set_probe([&](std::string_view stage, size_t, std::span<const float> values) {
    if (stage == "velocity") velocities.insert(velocities.end(), values.begin(), values.end());
  });
  const std::vector<float> noise = reference.get("step.noise");
  for (size_t i = 0; i < 2; ++i) {
    const OneStep step = one_step(flow, i == 0 ? nullptr : latent.data(), state);
    sample_one(head, step.hidden, {&noise[i * 32], 32}, latent);
    latents.insert(latents.end(), latent.begin(), latent.end());
  }
  EXPECT_LE(relative(velocities, reference.get("lsd3.velocity")), kBound);
  EXPECT_LE(relative(latents, reference.get("lsd3.latent")), kBound);
}

// GELU as version 2.1.0 computed it; the bound tells it from today's.
TEST(FlowHead, TheOlderGelu) {
  TestModel model = test_model("english");
  model.config.transformer.gelu_erf = true;
  const auto weights = load(model);
  const Arrays reference("english/reference.safetensors");
  ThreadTeam team(1);
  nn::Runner runner(team);
  FlowLm flow(weights, runner);
  FlowHead head(weights, *make_schedule(*weights, 1), runner);
  FlowLmState state = *FlowLmState::make(*weights, 64);
  ASSERT_TRUE(flow.prefill_voice(matrix_view(reference.get("erf.voice.latents"), 8), state).has_value());
  const size_t first = state.position;
  ASSERT_TRUE(flow.prefill_text(reference.get<int32_t>("text.ids"), state).has_value());
  const std::vector<float> keys = state.layer_keys(1);
  const std::vector<float> of_text(keys.begin() + static_cast<ptrdiff_t>(first * state.key_width()), keys.end());
  EXPECT_LE(relative(of_text, reference.get("erf.text.keys")), kBound);
  EXPECT_GT(relative(reference.get("text.keys"), reference.get("erf.text.keys")), 10 * kBound);
  std::vector<float> hidden, latents, latent(32);
  const std::vector<float> noise = reference.get("step.noise");
  for (size_t i = 0; i < 2; ++i) {
    const OneStep step = one_step(flow, i == 0 ? nullptr : latent.data(), state);
    hidden.insert(hidden.end(), step.hidden.row(0), step.hidden.row(0) + 32);
    sample_one(head, step.hidden, {&noise[i * 32], 32}, latent);
    latents.insert(latents.end(), latent.begin(), latent.end());
  }
  EXPECT_LE(relative(hidden, reference.get("erf.step.hidden")), kBound);
  EXPECT_LE(relative(latents, reference.get("erf.step.latent")), kBound);
  std::printf("worst of the latents: %.2g\n", relative(latents, reference.get("erf.step.latent")));
}

TEST(FlowHead, ScheduleHasLimits) {
  const auto lsd = load(test_model("english")), drifting = load(test_model("english_drifting"));
  const auto matching = load(test_model("flow_matching"));
  EXPECT_TRUE(make_schedule(*lsd, 1).has_value());
  EXPECT_EQ(make_schedule(*lsd, 0).error().code, Code::kInvalidArgument);
  EXPECT_EQ(make_schedule(*lsd, kMaxEvaluations + 1).error().code, Code::kInvalidArgument);
  EXPECT_EQ(make_schedule(*matching, 15).error().message, "15 sampler steps a frame; this model takes 16 to 64");
  EXPECT_EQ(make_schedule(*matching, 16)->time.size(), 16u * 24u);
  for (const size_t ignored : {0, 1, 1000}) EXPECT_EQ(make_schedule(*drifting, ignored)->evaluations, 1u);
}

}  // namespace
}  // namespace syrinx::pocket
