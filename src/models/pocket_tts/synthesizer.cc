#include "models/pocket_tts/synthesizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/pocket_tts/speech_end.h"

namespace syrinx::pocket {
namespace {

constexpr size_t kMostFramesAfterEnd = 1000;
// With fewer no sentence fits.
constexpr size_t kFewestTokens = kDefaultMaxTokens;

Status check(const SpeechSettings& settings) {
  if (settings.eos_threshold && !std::isfinite(*settings.eos_threshold))
    return fail(Code::kInvalidArgument, "an end-of-speech threshold of {} is no number; published ones are -4 and -1",
                *settings.eos_threshold);
  if (settings.frames_after_eos && *settings.frames_after_eos > kMostFramesAfterEnd)
    return fail(Code::kInvalidArgument, "{} frames after the end of speech: at most {} are spoken",
                *settings.frames_after_eos, kMostFramesAfterEnd);
  return {};
}

Status check_voice(const FlowLmState& voice, const FlowLmWeights& weights) {
  const size_t width = weights.config.transformer.key_width();
  if (voice.layers == weights.layers.size() && voice.key_width == width) return {};
  return fail(Code::kInvalidArgument,
              "the voice has {} layers of {} numbers, the model {} of {}; it is another model's", voice.layers,
              voice.key_width, weights.layers.size(), width);
}

// The longest chunk that there is room for.
Result<size_t> room_after(size_t voice_positions) {
  size_t tokens = kMaxChunkTokens;
  while (tokens >= kFewestTokens && needed_positions(voice_positions, tokens) > kMaxPositions) --tokens;
  if (tokens < kFewestTokens)
    return fail(Code::kLimitExceeded,
                "the voice has {} positions, which leaves no room to speak among {}; use a shorter recording",
                voice_positions, kMaxPositions);
  return tokens;
}

size_t default_steps(const Model& model) {
  return model.config().flow_lm.head == HeadType::kFlowMatching ? kMinFlowMatchingEvaluations : 1;
}

}  // namespace

Result<std::unique_ptr<Synthesizer>> Synthesizer::create(std::shared_ptr<const Model> model, VoiceState voice,
                                                         const SpeechSettings& settings, nn::Runner& runner) {
  SYRINX_TRY_VOID(check(settings));
  SYRINX_TRY_VOID(check_voice(*voice, *model->flow_lm()));
  SYRINX_TRY(const size_t most_tokens, room_after(voice->position));
  SYRINX_TRY(FlowSchedule schedule,
             make_schedule(*model->flow_lm(), settings.decode_steps.value_or(default_steps(*model))));
  const NoiseSettings of_noise{.temperature = settings.temperature.value_or(model->config().temperature),
                               .clamp = settings.noise_clamp};
  SYRINX_TRY(Noise noise,
             Noise::create(Noise::Generator::kPhilox, settings.seed, model->config().mimi.latent, of_noise));
  std::unique_ptr<Synthesizer> made(
      new Synthesizer(std::move(model), std::move(voice), settings, std::move(schedule), std::move(noise), runner));
  made->max_chunk_tokens_ = most_tokens;
  return made;
}

Synthesizer::Synthesizer(std::shared_ptr<const Model> model, VoiceState voice, const SpeechSettings& settings,
                         FlowSchedule schedule, Noise noise, nn::Runner& runner)
    : model_(std::move(model)),
      voice_(std::move(voice)),
      settings_(settings),
      noise_(std::move(noise)),
      speaker_(model_->flow_lm(), model_->decoder(), std::move(schedule), runner),
      block_(speaker_.latent()) {}

Status Synthesizer::begin(const Chunk& chunk) {
  const Config& config = model_->config();
  faulty_ = false;
  return speaker_.begin(0, voice_, chunk.ids, settings_.eos_threshold.value_or(config.eos_threshold),
                        frames_after_end(settings_.frames_after_eos, config.frames_after_eos, chunk.frames_guess));
}

bool Synthesizer::next(std::span<float> samples) {
  if (!speaker_.end(0).goes_on()) return false;
  noise_.fill(block_);
  if (!speaker_.next(0, block_, samples)) return false;
  faulty_ |= !std::all_of(samples.begin(), samples.end(), [](float sample) { return std::isfinite(sample); });
  return true;
}

}  // namespace syrinx::pocket
