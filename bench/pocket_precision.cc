// Cost of the narrow precisions of a Pocket TTS checkpoint, teacher-forced against f32: all precisions get the same
// voice, text and latents, so that each step stands for itself; the head gets the f32 model's hidden vector.
//
//   pocket_precision FOLDER [VOICE_FRAMES [TOKENS [STEPS]]]      FOLDER holds config.yaml and model.safetensors
//
// Prints the worst and the mean cosine of a single row and the largest difference of the end-of-speech logit, for a
// voice of random frames (125), random tokens (41) and the latents that f32 speaks (24 steps).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/rng.h"
#include "models/pocket_tts/flow_head.h"
#include "models/pocket_tts/flow_lm.h"
#include "models/pocket_tts/model.h"
#include "models/pocket_tts/noise.h"

namespace {

using namespace syrinx;
using Rows = std::vector<std::vector<float>>;

template <class T>
T get(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "pocket_precision: %s\n", result.error().message.c_str());
  std::exit(1);
}
void get(Status status) {
  if (status) return;
  std::fprintf(stderr, "pocket_precision: %s\n", status.error().message.c_str());
  std::exit(1);
}

struct Prompt {
  size_t voice_frames = 125, tokens = 41, steps = 24;
};

// Rows of every step, and of every layer over voice, text and steps.
struct Stages {
  Rows layers, hidden, latents, logits;
};

// `exact` is the f32 model's, or null for that model itself, which then speaks freely.
Stages run(const std::string& folder, Precision precision, const Prompt& prompt, const Stages* exact) {
  const auto model = get(pocket::Model::load(folder, {.locate = {}, .cache_dir = {}, .precision = precision}));
  const auto weights = model->flow_lm();
  ThreadTeam team(2);
  nn::Runner runner(team);
  pocket::FlowLm flow(weights, runner);
  const bool matching = model->config().flow_lm.head == pocket::HeadType::kFlowMatching;
  pocket::FlowHead head(
      weights, get(pocket::make_schedule(*weights, matching ? pocket::kMinFlowMatchingEvaluations : 1)), runner);
  pocket::Noise noise = get(pocket::Noise::create(pocket::Noise::Generator::kPhilox, 1, weights->latent,
                                                  {.temperature = model->config().temperature, .clamp = {}}));
  auto state = get(pocket::FlowLmState::make(*weights, prompt.voice_frames + 1 + prompt.tokens + prompt.steps));
  Stages seen;
  flow.set_probe([&](std::string_view stage, size_t, View<const float, 2> rows) {
    if (stage != "layer") return;
    for (size_t n = 0; n < rows.extent(0); ++n) seen.layers.emplace_back(rows.row(n), rows.row(n) + rows.extent(1));
  });
  std::vector<float> voice(prompt.voice_frames * weights->voice_width);
  Rng(1, 1).fill_normal(voice);
  get(flow.prefill_voice({voice.data(), {prompt.voice_frames, weights->voice_width}}, state));
  std::vector<int32_t> ids(prompt.tokens);
  Rng random(1);
  for (int32_t& id : ids) id = static_cast<int32_t>(random.next_u32() % weights->config.text_bins);
  get(flow.prefill_text(ids, state));
  std::vector<float> drawn(weights->latent), latent(weights->latent);
  for (size_t i = 0; i < prompt.steps; ++i) {
    const Rows& fed = exact != nullptr ? exact->latents : seen.latents;
    const pocket::FlowLm::Stream stream{i == 0 ? nullptr : fed[i - 1].data(), &state};
    const pocket::FlowLm::Steps steps = flow.step({&stream, 1});
    seen.hidden.emplace_back(steps.hidden.row(0), steps.hidden.row(0) + steps.hidden.extent(1));
    seen.logits.push_back({steps.logit(0)});
    noise.fill(drawn);
    const pocket::FlowHead::Stream row{exact != nullptr ? exact->hidden[i] : seen.hidden[i], drawn, latent};
    head.sample({&row, 1});
    seen.latents.push_back(latent);
  }
  return seen;
}

struct Cosines {
  double worst = 1.0, mean = 0.0;
};

Cosines cosines(const Rows& a, const Rows& b) {
  Cosines result;
  for (size_t n = 0; n < a.size(); ++n) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < a[n].size(); ++i) {
      ab += static_cast<double>(a[n][i]) * b[n][i];
      aa += static_cast<double>(a[n][i]) * a[n][i];
      bb += static_cast<double>(b[n][i]) * b[n][i];
    }
    const double cosine = ab / std::sqrt(aa * bb);
    result.worst = std::min(result.worst, cosine);
    result.mean += cosine / static_cast<double>(a.size());
  }
  return result;
}

size_t number(const char* text) {
  const long value = std::strtol(text, nullptr, 10);
  if (value >= 1 && value <= 4000) return static_cast<size_t>(value);
  std::fprintf(stderr, "pocket_precision: '%s' is no number from 1 to 4000\n", text);
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 5) {
    std::fprintf(stderr, "pocket_precision FOLDER [VOICE_FRAMES [TOKENS [STEPS]]]\n");
    return 2;
  }
  Prompt prompt;
  if (argc > 2) prompt.voice_frames = number(argv[2]);
  if (argc > 3) prompt.tokens = number(argv[3]);
  if (argc > 4) prompt.steps = number(argv[4]);
  const Stages exact = run(argv[1], Precision::kF32, prompt, nullptr);
  std::printf("%s: %zu voice frames, %zu tokens, %zu steps; cosines with f32 as worst row and mean\n", argv[1],
              prompt.voice_frames, prompt.tokens, prompt.steps);
  std::printf("%-6s %-19s %-19s %-19s %s\n", "", "layers", "hidden", "latent", "logit within");
  for (const Precision precision : {Precision::kBf16, Precision::kInt8, Precision::kInt4}) {
    const Stages narrow = run(argv[1], precision, prompt, &exact);
    double logit = 0.0;
    for (size_t n = 0; n < prompt.steps; ++n)
      logit = std::max(logit, std::fabs(static_cast<double>(narrow.logits[n][0]) - exact.logits[n][0]));
    std::printf("%-6s", precision_name(precision));
    for (const auto& [ours, theirs] : {std::pair(&narrow.layers, &exact.layers),
                                       {&narrow.hidden, &exact.hidden},
                                       {&narrow.latents, &exact.latents}}) {
      const Cosines c = cosines(*ours, *theirs);
      std::printf(" %.5f, %.5f   ", c.worst, c.mean);
    }
    std::printf(" %.3f\n", logit);
  }
}
