#include "ends.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "models/pocket_tts/flow_head.h"
#include "models/pocket_tts/flow_lm.h"
#include "models/pocket_tts/model.h"
#include "models/pocket_tts/noise.h"
#include "models/pocket_tts/prompt.h"
#include "models/pocket_tts/speech_end.h"
#include "models/pocket_tts/voice_state.h"

namespace syrinx::pocket {
namespace {

// Sentences of all kinds, of one to three dozen tokens.
constexpr std::array kTexts = {
    "Good morning.",
    "The train leaves at nine.",
    "Where did you put the keys?",
    "I have never seen so much snow in April.",
    "Please close the door behind you.",
    "She bought three apples, two pears and a loaf of bread.",
    "Nobody knows why the bridge was closed last night.",
    "It costs 3.50 dollars.",
    "Turn left at the church, then walk on until you reach the river.",
    "What a beautiful day!",
    "The results were better than anyone had expected.",
    "He said that he would call, but the phone stayed silent.",
    "Rain is likely in the north this evening.",
    "My brother plays the violin and my sister the drums.",
    "Are you sure about that?",
    "The library opens again on Monday.",
    "We walked for hours and found no water.",
    "Thank you very much for your help yesterday.",
    "There is a small garden full of roses behind the old house.",
    "Yes, of course.",
};

constexpr uint64_t kSeeds = 200;  // a text

// One precision of a checkpoint with its voice.
struct Speaker {
  static Result<std::unique_ptr<Speaker>> load(const std::string& checkpoint, Precision precision,
                                               std::span<const float> recording, int threads) {
    SYRINX_TRY(std::shared_ptr<const Model> model, Model::load(checkpoint, {.precision = precision}));
    const size_t evaluations =
        model->config().flow_lm.head == HeadType::kFlowMatching ? kMinFlowMatchingEvaluations : 1;
    SYRINX_TRY(FlowSchedule schedule, make_schedule(*model->flow_lm(), evaluations));
    auto speaker = std::make_unique<Speaker>(std::move(model), std::move(schedule), threads);
    SYRINX_TRY(speaker->voice, clone_voice(*speaker->model, recording, speaker->runner));
    return speaker;
  }
  Speaker(std::shared_ptr<const Model> m, FlowSchedule schedule, int threads)
      : model(std::move(m)),
        team(threads),
        runner(team),
        flow(model->flow_lm(), runner),
        head(model->flow_lm(), std::move(schedule), runner) {}

  // The logits of as many steps as a chunk may have; the latents, [steps, X], are appended.
  Result<std::vector<float>> spoken(std::span<const int32_t> ids, uint64_t seed, std::vector<float>& latents) {
    const FlowLmWeights& w = *model->flow_lm();
    SYRINX_TRY(Noise noise, Noise::create(Noise::Generator::kPhilox, seed, w.latent,
                                          {.temperature = model->config().temperature, .clamp = {}}));
    SYRINX_TRY(FlowLmState state, begin(ids));
    std::vector<float> logits, block(w.latent), latent(w.latent);
    for (size_t i = 0; i < max_steps(ids.size()); ++i) {
      const FlowLm::Stream stream{i == 0 ? nullptr : latent.data(), &state};
      const FlowLm::Steps step = flow.step({&stream, 1});
      logits.push_back(step.logit(0));
      noise.fill(block);
      const FlowHead::Stream frame{{step.hidden.row(0), step.hidden.extent(1)}, block, latent};
      head.sample({&frame, 1});
      latents.insert(latents.end(), latent.begin(), latent.end());
    }
    return logits;
  }
  // The same with those latents fed in.
  Result<std::vector<float>> forced(std::span<const int32_t> ids, std::span<const float> latents) {
    const size_t width = model->flow_lm()->latent;
    SYRINX_TRY(FlowLmState state, begin(ids));
    std::vector<float> logits;
    for (size_t i = 0; i < max_steps(ids.size()); ++i) {
      const FlowLm::Stream stream{i == 0 ? nullptr : &latents[(i - 1) * width], &state};
      logits.push_back(flow.step({&stream, 1}).logit(0));
    }
    return logits;
  }
  Result<FlowLmState> begin(std::span<const int32_t> ids) {
    SYRINX_TRY(FlowLmState state, FlowLmState::make(*model->flow_lm(), needed_positions(0, ids.size())));
    SYRINX_TRY_VOID(state.start_after(voice));
    SYRINX_TRY_VOID(flow.prefill_text(ids, state));
    return state;
  }

  std::shared_ptr<const Model> model;
  ThreadTeam team;
  nn::Runner runner;
  FlowLm flow;
  FlowHead head;
  VoiceState voice;
};

bool clear(std::span<const float> logits, float threshold, float clearance) {
  const std::optional<size_t> end = end_step(logits, threshold);
  for (size_t i = kFirstEndStep; end && i <= *end; ++i)
    if (std::fabs(logits[i] - threshold) < clearance) return false;
  return end.has_value();
}

}  // namespace

Result<std::vector<TextEnds>> speak_texts(const std::string& checkpoint, std::span<const float> recording,
                                          float clearance, int threads) {
  SYRINX_TRY(const std::unique_ptr<Speaker> exact, Speaker::load(checkpoint, Precision::kF32, recording, threads));
  std::array<std::unique_ptr<Speaker>, kNarrowPrecisions.size()> narrow;
  for (size_t p = 0; p < narrow.size(); ++p) {
    SYRINX_TRY(narrow[p], Speaker::load(checkpoint, kNarrowPrecisions[p], recording, threads));
  }
  const Config& config = exact->model->config();
  std::vector<TextEnds> texts;
  for (const char* const text : kTexts) {
    SYRINX_TRY(const std::vector<Chunk> chunks,
               split_text(text, std::numeric_limits<size_t>::max(), config.text, exact->model->tokenizer()));
    const std::vector<int32_t>& ids = chunks.at(0).ids;
    TextEnds ends{.text = text, .tokens = ids.size(), .exact = {}, .forced = {}, .running = {}};
    uint64_t seed = texts.size();
    std::vector<float> latents, own;
    SYRINX_TRY(ends.exact, exact->spoken(ids, seed, latents));
    while (clearance > 0 && !clear(ends.exact, config.eos_threshold, clearance)) {
      seed += kTexts.size();
      if (seed >= kSeeds * kTexts.size())
        return fail(Code::kNotFound, "no seed ends '{}' {} clear of the threshold", text, clearance);
      latents.clear();
      SYRINX_TRY(ends.exact, exact->spoken(ids, seed, latents));
    }
    for (size_t p = 0; p < narrow.size(); ++p) {
      SYRINX_TRY(ends.forced[p], narrow[p]->forced(ids, latents));
      SYRINX_TRY(ends.running[p], narrow[p]->spoken(ids, seed, own));
    }
    texts.push_back(std::move(ends));
  }
  return texts;
}

std::optional<size_t> end_step(std::span<const float> logits, float threshold) {
  SpeechEnd end(threshold, 0, logits.size());
  for (const float logit : logits)
    if (!end.speaks(logit)) break;
  return end.end_step();
}

EndComparison compare_ends(std::span<const float> exact, std::span<const float> narrow, float threshold) {
  EndComparison comparison{.exact = end_step(exact, threshold), .narrow = end_step(narrow, threshold)};
  if (!comparison.same()) {
    const size_t first = std::min(comparison.exact.value_or(exact.size()), comparison.narrow.value_or(exact.size()));
    comparison.margin = std::fabs(exact[first] - threshold);
    comparison.error = std::fabs(narrow[first] - exact[first]);
  }
  return comparison;
}

}  // namespace syrinx::pocket
