// The generation loop: its rules alone, then language model, head and rules together in free running, with the maker's
// noise, for every generation of the reference.
#include "base/json.h"
#include "fixtures.h"
#include "models/pocket_tts/flow_head.h"
#include "models/pocket_tts/flow_lm.h"
#include "models/pocket_tts/speech_end.h"

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

double number(const Json& object, const char* key, double otherwise) {
  const Json* const value = object.find(key);
  if (value == nullptr) return otherwise;
  return value->whole() != nullptr ? static_cast<double>(*value->whole()) : *value->real();
}
size_t count(const Json& object, const char* key) { return static_cast<size_t>(number(object, key, -1)); }

// What one generation has said so far, and where it stands in the reference's noise.
struct Spoken {
  std::vector<float> noise, logits, denormalised;
  size_t step = 0;
};

// Speaks one chunk after a voice and checks its numbers of steps and frames.
void speak(const TestModel& model, const Json& chunk, float threshold, const std::shared_ptr<const FlowLmState>& voice,
           FlowLm& flow, FlowHead& head, Spoken& spoken) {
  const FlowLmWeights& w = flow.weights();
  std::vector<int32_t> ids;
  for (const Json& id : *chunk.find("ids")->array()) ids.push_back(static_cast<int32_t>(*id.whole()));
  EXPECT_EQ(max_steps(ids.size()), count(chunk, "max_steps"));
  auto made = FlowLmState::make(w, needed_positions(0, ids.size()));
  ASSERT_TRUE(made.has_value());
  FlowLmState state = std::move(*made);
  ASSERT_TRUE(state.start_after(voice).has_value());
  ASSERT_TRUE(flow.prefill_text(ids, state).has_value());
  SpeechEnd end(threshold, count(chunk, "frames_after_eos"), max_steps(ids.size()));
  std::vector<float> latent(model.latent);
  while (end.goes_on()) {
    const OneStep step = one_step(flow, end.steps() == 0 ? nullptr : latent.data(), state);
    ASSERT_LE((spoken.step + 1) * model.latent, spoken.noise.size());
    sample_one(head, step.hidden, {&spoken.noise[spoken.step++ * model.latent], model.latent}, latent);
    spoken.logits.push_back(step.eos_logit);
    if (!end.speaks(step.eos_logit)) break;
    for (size_t k = 0; k < model.latent; ++k)
      spoken.denormalised.push_back(latent[k] * w.latent_std[k] + w.latent_mean[k]);
  }
  EXPECT_FALSE(state.full);
  EXPECT_EQ(end.steps(), count(chunk, "steps"));
  EXPECT_EQ(end.frames(), count(chunk, "frames"));
  const auto eos_step = static_cast<int64_t>(number(chunk, "eos_step", -2));
  EXPECT_EQ(end.end_step() ? static_cast<int64_t>(*end.end_step()) : -1, eos_step);
}

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
  const Json::Array& generations = *json->find("generate")->array();
  ASSERT_GE(generations.size(), 2u);
  double worst = 0;
  for (size_t g = 0; g < generations.size(); ++g) {
    SCOPED_TRACE(g);
    const std::string name = fmt::format("generate.{}.", g);
    const float threshold = static_cast<float>(number(generations[g], "eos_threshold", model.eos_threshold));
    Spoken spoken{.noise = reference.get(name + "noise"), .logits = {}, .denormalised = {}};
    for (const Json& chunk : *generations[g].find("chunks")->array())
      speak(model, chunk, threshold, voice, flow, head, spoken);
    EXPECT_EQ(spoken.step * model.latent, spoken.noise.size());
    for (const auto& [values, array] : {std::pair{&spoken.logits, "logit"}, {&spoken.denormalised, "denormalised"}}) {
      const double error = relative(*values, reference.get(name + array));
      EXPECT_LE(error, 1e-4) << array;
      worst = std::max(worst, error);
    }
  }
  std::printf("worst: %.2g of the maximum in free running\n", worst);
}

}  // namespace
}  // namespace syrinx::pocket
