// The language model against the maker's arrays, stage by stage, in all eight configurations; then the rules of passes
// and states.
#include "models/pocket_tts/flow_lm.h"

#include "allocation_count.h"
#include "fixtures.h"
#include "stages.h"

namespace syrinx::pocket {
namespace {

// Two correct implementations differ by 3e-6 of a stage's maximum (docs/pocket_tts.md, "Rounding").
constexpr double kBound = 1e-5;

// One model with everything that runs it, and what a probe saw.
struct Running {
  explicit Running(const TestModel& model, int threads = 1, Precision precision = Precision::kF32)
      : test(model),
        reference(model.name + "/reference.safetensors"),
        team(threads),
        runner(team),
        flow(load(model, precision), runner) {}

  FlowLmState state(size_t capacity = 64) const {
    auto made = FlowLmState::make(flow.weights(), capacity);
    EXPECT_TRUE(made.has_value());
    return std::move(*made);
  }
  void read_prompt(FlowLmState& to) {
    const std::vector<float> voice = reference.get("voice.projected");
    const std::vector<int32_t> ids = reference.get<int32_t>("text.ids");
    ASSERT_TRUE(flow.prefill_projected(matrix_view(voice, test.config.transformer.width), to).has_value());
    ASSERT_TRUE(flow.prefill_text(ids, to).has_value());
  }

  const TestModel& test;
  Arrays reference;
  ThreadTeam team;
  nn::Runner runner;
  FlowLm flow;
};

class FlowLmParity : public ::testing::TestWithParam<TestModel> {};
INSTANTIATE_TEST_SUITE_P(All, FlowLmParity, ::testing::ValuesIn(test_models()), name_of);

TEST_P(FlowLmParity, VoiceTextAndSteps) {
  Running run(GetParam());
  const auto stages = flow_lm_stages(run.flow, run.reference.tensors());
  // Of many layers three are stored: of the voice, the text and the steps.
  const size_t layers = std::min<size_t>(run.test.config.transformer.layers, 3);
  EXPECT_EQ(count_within(stages, kBound), 3 * layers + 6);
}

// Neither how rows are cut into passes nor the number of threads may matter; the last layer's output, which a prompt
// leaves out, neither.
TEST_P(FlowLmParity, OnePassEqualsRowByRow) {
  Running run(GetParam(), 3), single(GetParam());
  FlowLmState together = run.state(), apart = run.state();
  run.read_prompt(together);
  const std::vector<float> voice = run.reference.get("voice.projected");
  const std::vector<int32_t> ids = run.reference.get<int32_t>("text.ids");
  const size_t width = run.test.config.transformer.width;
  // The vector before the voice comes with the first rows alone.
  ASSERT_TRUE(single.flow.prefill_projected({voice.data(), {voice.size() / width, width}}, apart).has_value());
  for (const int32_t id : ids) ASSERT_TRUE(single.flow.prefill_text({&id, 1}, apart).has_value());
  ASSERT_EQ(together.position, apart.position);
  const auto contents = [&](const FlowLmState& state) {
    std::vector<float> all;
    for (size_t i = 0; i < state.layers; ++i) {
      for (const std::vector<float>& rows : {state.layer_keys(i), state.layer_values(i)})
        all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  };
  EXPECT_LE(relative(contents(together), contents(apart)), 3e-6);
  const OneStep a = one_step(run.flow, nullptr, together), b = one_step(single.flow, nullptr, apart);
  EXPECT_NEAR(a.eos_logit, b.eos_logit, 1e-5 * std::fabs(b.eos_logit) + 1e-5);
}

void expect_the_same_behind_a_voice(const TestModel& model, Precision precision) {
  SCOPED_TRACE(precision_name(precision));
  Running run(model, 1, precision);
  FlowLmState state = run.state();
  const auto voice = std::make_shared<FlowLmState>(run.state(40));
  const auto speak = [&](FlowLmState& s) {
    std::vector<float> hidden;
    for (int i = 0; i < 3; ++i) {
      const OneStep step = one_step(run.flow, nullptr, s);
      hidden.insert(hidden.end(), step.hidden.row(0), step.hidden.row(0) + step.hidden.extent(1));
      hidden.push_back(step.eos_logit);
    }
    return hidden;
  };
  run.read_prompt(state);
  run.read_prompt(*voice);
  const std::vector<float> fresh = speak(state);
  state.reset();
  run.read_prompt(state);
  EXPECT_EQ(speak(state), fresh);
  ASSERT_TRUE(state.start_after(voice).has_value());
  EXPECT_EQ(state.shared(), voice->position);
  EXPECT_EQ(speak(state), fresh);
  // The voice is as it was, and a stream that has one keeps it alive.
  FlowLmState second = run.state(3);
  ASSERT_TRUE(second.start_after(voice).has_value());
  EXPECT_EQ(speak(second), fresh);
  EXPECT_EQ(second.room(), 0u);
}

TEST_P(FlowLmParity, ResetAndASharedVoiceGiveTheSameNumbers) {
  for (const Precision precision : kAllPrecisions) expect_the_same_behind_a_voice(GetParam(), precision);
}

// Streams at different positions, with and without a shared voice, any number of threads: the bits of each alone.
void expect_the_same_together(const TestModel& model, Precision precision) {
  SCOPED_TRACE(precision_name(precision));
  std::vector<float> one_thread;
  for (const int threads : {1, 2, 3}) {
    SCOPED_TRACE(threads);
    Running run(model, threads, precision);
    FlowLm batch(load(run.test, precision), run.runner, 4);
    std::vector<float> heard;
    const auto voice = std::make_shared<FlowLmState>(run.state(40));
    run.read_prompt(*voice);
    std::vector<FlowLmState> alone, together;
    for (std::vector<FlowLmState>* states : {&alone, &together}) {
      for (size_t n = 0; n < 4; ++n) {
        states->push_back(run.state(64));
        if (n % 2 == 1) {
          ASSERT_TRUE(states->back().start_after(voice).has_value());
        }
        std::vector<int32_t> ids(3 * n + 1, static_cast<int32_t>(n));
        ASSERT_TRUE(run.flow.prefill_text(ids, states->back()).has_value());
      }
    }
    std::vector<float> latent(run.test.latent, 0.5f);
    for (int round = 0; round < 3; ++round) {
      std::vector<FlowLm::Stream> streams;
      for (FlowLmState& state : together) streams.push_back({round == 0 ? nullptr : latent.data(), &state});
      const FlowLm::Steps steps = batch.step(streams);
      for (size_t n = 0; n < 4; ++n) {
        const OneStep step = one_step(run.flow, streams[n].latent, alone[n]);
        EXPECT_EQ(std::memcmp(step.hidden.row(0), steps.hidden.row(n), step.hidden.extent(1) * sizeof(float)), 0) << n;
        EXPECT_EQ(step.eos_logit, steps.logit(n)) << n;
        EXPECT_EQ(alone[n].position, together[n].position);
        heard.insert(heard.end(), steps.hidden.row(n), steps.hidden.row(n) + steps.hidden.extent(1));
      }
    }
    if (threads == 1) one_thread = heard;
    EXPECT_EQ(heard, one_thread);
  }
}

TEST_P(FlowLmParity, StreamsTogetherGiveWhatEachGivesAlone) {
  for (const Precision precision : kAllPrecisions) expect_the_same_together(GetParam(), precision);
}

void expect_no_allocation(const TestModel& model, Precision precision) {
  SCOPED_TRACE(precision_name(precision));
  Running run(model, 2, precision);
  FlowLm batch(load(run.test, precision), run.runner, 2);
  FlowLmState first = run.state(200), second = run.state(200);
  run.read_prompt(first);
  run.read_prompt(second);
  const std::vector<FlowLm::Stream> streams = {{nullptr, &first}, {nullptr, &second}};
  const size_t before = allocation_count();
  for (int i = 0; i < 100; ++i) batch.step(streams);
  for (int i = 0; i < 50; ++i) one_step(run.flow, nullptr, first);
  EXPECT_EQ(allocation_count() - before, 0u);
}

TEST_P(FlowLmParity, AStepAllocatesNothing) {
  for (const Precision precision : kAllPrecisions) expect_no_allocation(GetParam(), precision);
}

// What is written into a state and read from it again: as it was in f32, rounded to bf16 under the narrow precisions,
// which take half the memory.
TEST_P(FlowLmParity, AStateKeepsRowsInItsType) {
  Running exact(GetParam());
  const FlowLmState prompt = [&] {
    FlowLmState state = exact.state();
    exact.read_prompt(state);
    return state;
  }();
  for (const Precision precision : kAllPrecisions) {
    SCOPED_TRACE(precision_name(precision));
    auto made = FlowLmState::make(*load(exact.test, precision), 64);
    ASSERT_TRUE(made.has_value());
    EXPECT_EQ(made->type, precision == Precision::kF32 ? DType::kF32 : DType::kBF16);
    EXPECT_EQ(made->bytes(), precision == Precision::kF32 ? prompt.bytes() : prompt.bytes() / 2);
    made->position = prompt.position;
    for (size_t i = 0; i < prompt.layers; ++i) {
      std::vector<float> keys = prompt.layer_keys(i), values = prompt.layer_values(i);
      ASSERT_EQ(keys.size(), prompt.position * prompt.key_width());
      made->set_layer(i, keys, values);
      if (precision != Precision::kF32) {
        for (std::vector<float>* rows : {&keys, &values})
          for (float& number : *rows) number = bf16_to_f32(f32_to_bf16(number));
      }
      EXPECT_EQ(made->layer_keys(i), keys) << "layer " << i;
      EXPECT_EQ(made->layer_values(i), values) << "layer " << i;
    }
  }
}

TEST(FlowLm, LongPromptsGoThroughInSeveralPasses) {
  const TestModel model = test_model("english");
  Running run(model);
  std::vector<int32_t> ids(300);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i % 399);
  FlowLmState together = run.state(300), apart = run.state(300);
  ASSERT_TRUE(run.flow.prefill_text(ids, together).has_value());
  for (size_t i = 0; i < ids.size(); i += 50)
    ASSERT_TRUE(run.flow.prefill_text(std::span(ids).subspan(i, 50), apart).has_value());
  for (size_t i = 0; i < together.layers; ++i)
    EXPECT_LE(relative(together.layer_keys(i), apart.layer_keys(i)), 3e-6) << "layer " << i;
}

// Passes of 126 and of 74 rows, which are cut at other places.
TEST(FlowLm, CutPromptsLeaveTheSameBits) {
  const TestModel model = test_model("english");
  std::vector<int32_t> ids(200);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i % 399);
  for (const Precision precision : {Precision::kF32, Precision::kBf16, Precision::kInt8, Precision::kInt4}) {
    for (const int threads : {1, 2}) {
      Running run(model, threads, precision);
      FlowLmState whole = run.state(200), cut = run.state(200);
      ASSERT_TRUE(run.flow.prefill_text(ids, whole).has_value());
      int jobs = 1;
      ASSERT_TRUE(run.flow.prefill_text(ids, cut, [&jobs] { ++jobs; }).has_value());
      EXPECT_EQ(jobs, 8);
      EXPECT_EQ(cut.position, whole.position);
      for (size_t i = 0; i < whole.layers; ++i) {
        EXPECT_EQ(cut.layer_keys(i), whole.layer_keys(i)) << precision_name(precision) << " layer " << i;
        EXPECT_EQ(cut.layer_values(i), whole.layer_values(i)) << precision_name(precision) << " layer " << i;
      }
    }
  }
}

TEST(FlowLm, AFullStateRefusesRowsAndMarksSteps) {
  const TestModel model = test_model("english");
  Running run(model);
  FlowLmState state = run.state(31);
  run.read_prompt(state);
  ASSERT_EQ(state.position, 30u);
  const std::vector<int32_t> ids = {1, 2};
  const Status status = run.flow.prefill_text(ids, state);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::kLimitExceeded);
  EXPECT_EQ(status.error().message, "2 rows more after position 30 of a stream that has room for 31");
  EXPECT_EQ(state.position, 30u);
  one_step(run.flow, nullptr, state);
  EXPECT_FALSE(state.full);
  one_step(run.flow, nullptr, state);
  EXPECT_TRUE(state.full);
  EXPECT_EQ(state.position, 31u);
  state.reset();
  EXPECT_FALSE(state.full);
}

TEST(FlowLmDeathTest, AStateWithHeadsOfAnotherSizeIsOurBug) {
  Running run(test_model("english"));
  FlowLmState state = run.state();
  state.key_heads *= 2;
  state.head_size /= 2;
  EXPECT_DEATH(one_step(run.flow, nullptr, state), "a cache of 2 layers");
}

TEST(FlowLm, WhatDoesNotFitIsRefused) {
  const TestModel model = test_model("english"), other = test_model("english_24l");
  Running run(model), layers(other);
  FlowLmState state = run.state();
  const auto stranger = std::make_shared<FlowLmState>(layers.state());
  for (const int32_t id : {-1, 400, 401}) {
    const Status status = run.flow.prefill_text({&id, 1}, state);
    ASSERT_FALSE(status.has_value()) << id;
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
  }
  const std::vector<float> rows(66);
  EXPECT_FALSE(run.flow.prefill_projected(matrix_view(rows, 33), state).has_value());
  EXPECT_FALSE(run.flow.prefill_voice(matrix_view(rows, 6), state).has_value());
  EXPECT_EQ(state.position, 0u);
  EXPECT_EQ(state.start_after(stranger).error().code, Code::kInvalidArgument);
  const auto narrow = std::make_shared<FlowLmState>(Running(model, 1, Precision::kInt8).state());
  const Status other_type = state.start_after(narrow);
  ASSERT_FALSE(other_type.has_value());
  EXPECT_EQ(other_type.error().code, Code::kInvalidArgument);
  EXPECT_EQ(other_type.error().message, "the voice is in bf16, the model in f32; make it under the model's precision");
  const auto voice = std::make_shared<FlowLmState>(run.state());
  run.read_prompt(*voice);
  FlowLmState longest = run.state(kMaxPositions);
  EXPECT_EQ(longest.start_after(voice).error().code, Code::kLimitExceeded);
  ASSERT_TRUE(state.start_after(voice).has_value());
  FlowLmState after = run.state();
  EXPECT_EQ(after.start_after(std::make_shared<FlowLmState>(std::move(state))).error().code, Code::kInvalidArgument);
  EXPECT_EQ(FlowLmState::make(run.flow.weights(), kMaxPositions + 1).error().code, Code::kLimitExceeded);
}

}  // namespace
}  // namespace syrinx::pocket
