// The generation loop: its rules alone, then language model, head and rules together in free running, with the maker's
// noise, for every generation of the reference.
#include "base/json.h"
#include "fixtures.h"
#include "models/pocket_tts/flow_head.h"
#include "models/pocket_tts/flow_lm.h"
#include "models/pocket_tts/speech_end.h"
#include "stages.h"

namespace syrinx::pocket {
namespace {

constexpr float kFires = 1.0f, kQuiet = -5.0f, kThreshold = -4.0f;

TEST(SpeechEnd, LimitOfSteps) {
  EXPECT_EQ(max_steps(0), 25u);
  EXPECT_EQ(max_steps(3), 38u);
  EXPECT_EQ(max_steps(15), 88u);
  EXPECT_EQ(max_steps(50), 234u);
  EXPECT_EQ(needed_positions(130, 15), 130u + 15u + 88u);
}

TEST(SpeechEnd, FramesAfterTheEnd) {
  EXPECT_EQ(frames_after_end({}, {}, 3), 5u);
  EXPECT_EQ(frames_after_end({}, {}, 1), 3u);
  EXPECT_EQ(frames_after_end({}, 8, 1), 8u);
  EXPECT_EQ(frames_after_end(0, 8, 1), 0u);
}

// Frames spoken when the logit is above the threshold from step `from` on.
size_t spoken(size_t from, size_t after, size_t limit, size_t* steps) {
  SpeechEnd end(kThreshold, after, limit);
  size_t count = 0;
  while (end.goes_on()) count += end.speaks(end.steps() >= from ? kFires : kQuiet) ? 1 : 0;
  EXPECT_EQ(count, end.frames());
  *steps = end.steps();
  return count;
}

TEST(SpeechEnd, TheStepAtTheEndIsComputedAndDropped) {
  size_t steps = 0;
  EXPECT_EQ(spoken(8, 3, 100, &steps), 11u);
  EXPECT_EQ(steps, 12u);
  EXPECT_EQ(spoken(8, 0, 100, &steps), 8u);
  EXPECT_EQ(steps, 9u);
  EXPECT_EQ(spoken(0, 3, 100, &steps), 9u);  // not before step 6
  EXPECT_EQ(spoken(99, 3, 20, &steps), 20u);
  EXPECT_EQ(steps, 20u);
  EXPECT_EQ(spoken(18, 3, 20, &steps), 20u);  // the limit comes first
  EXPECT_EQ(spoken(8, SIZE_MAX, 20, &steps), 20u);
}

TEST(SpeechEnd, AnEarlyFiringIsNotRemembered) {
  SpeechEnd end(kThreshold, 1, 100);
  for (size_t step = 0; step < kFirstEndStep; ++step) EXPECT_TRUE(end.speaks(kFires));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(end.speaks(kQuiet));
  EXPECT_FALSE(end.end_step().has_value());
  EXPECT_TRUE(end.speaks(kFires));  // remembered from here on, whatever follows
  EXPECT_FALSE(end.speaks(kQuiet));
  EXPECT_FALSE(end.goes_on());
  EXPECT_EQ(end.end_step(), 16u);
  EXPECT_FALSE(end.limited());
}

TEST(SpeechEnd, TheLimitMayComeAfterTheModelsEnd) {
  SpeechEnd end(kThreshold, 3, 20);
  for (size_t step = 0; step < 19; ++step) EXPECT_TRUE(end.speaks(kQuiet));
  EXPECT_FALSE(end.limited());
  EXPECT_TRUE(end.speaks(kFires));
  EXPECT_EQ(end.end_step(), 19u);
  EXPECT_FALSE(end.goes_on());
  EXPECT_TRUE(end.limited());
}

TEST(SpeechEnd, TheThresholdItselfIsNotEnough) {
  SpeechEnd end(kThreshold, 0, 100);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(end.speaks(kThreshold));
  EXPECT_FALSE(end.speaks(std::nextafter(kThreshold, 0.0f)));
}

class Generate : public ::testing::TestWithParam<TestModel> {};
INSTANTIATE_TEST_SUITE_P(All, Generate, ::testing::ValuesIn(test_models()), name_of);

TEST_P(Generate, FreeRunningAgreesToTheEnd) {
  const TestModel& model = GetParam();
  const auto weights = load(model);
  const std::string& folder = model.name;
  const Arrays reference(folder + "/reference.safetensors");
  auto json = parse_json(file_text(folder + "/reference.json"), "reference.json");
  ASSERT_TRUE(json.has_value()) << json.error().message;
  ThreadTeam team(1);
  nn::Runner runner(team);
  FlowLm flow(weights, runner);
  FlowHead head(weights, *make_schedule(*weights, model.evaluations), runner);
  auto voice = std::make_shared<FlowLmState>(*FlowLmState::make(*weights, 16));
  const std::vector<float> projected = reference.get("voice.projected");
  ASSERT_TRUE(flow.prefill_projected(matrix_view(projected, model.config.transformer.width), *voice).has_value());
  const auto generations = read_generations(*json, model.eos_threshold);
  ASSERT_TRUE(generations.has_value()) << generations.error().message;
  ASSERT_GE(generations->size(), 2u);
  for (const Generation& generation : *generations)
    EXPECT_EQ(count_within(generated_latents(generation, voice, flow, head, reference.tensors()), 1e-4), 2u);
}

}  // namespace
}  // namespace syrinx::pocket
