#include "engine/families/pocket_tts/synthesizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "models/pocket_tts/speech_end.h"

namespace syrinx::pocket {
namespace {

constexpr size_t kMostFramesAfterEnd = 1000;
// With fewer no sentence fits.
constexpr size_t kFewestTokens = kDefaultMaxTokens;

Status check(const SpeechSettings& settings) {
  if (settings.eos_threshold && !std::isfinite(*settings.eos_threshold))
    return fail(Code::kInvalidArgument,
                "an end-of-speech threshold of {} is not a number; published ones are -4 and -1",
                *settings.eos_threshold);
  if (settings.frames_after_eos && *settings.frames_after_eos > kMostFramesAfterEnd)
    return fail(Code::kInvalidArgument, "{} frames after the end of speech: at most {} are spoken",
                *settings.frames_after_eos, kMostFramesAfterEnd);
  return {};
}

Status check_voice(const FlowLmState& voice, const FlowLmWeights& weights) {
  const TransformerConfig& t = weights.config.transformer;
  if (voice.layers != weights.layers.size() || voice.key_heads != t.key_heads || voice.head_size != t.head_size())
    return fail(Code::kInvalidArgument,
                "the voice has {} layers of {} x {} numbers, the model {} of {} x {}; it is another model's",
                voice.layers, voice.key_heads, voice.head_size, weights.layers.size(), t.key_heads, t.head_size());
  if (voice.type != cache_type(weights.precision))
    return fail(Code::kInvalidArgument, "the voice is in {}, the model in {}; make it under the model's precision",
                dtype_name(voice.type), dtype_name(cache_type(weights.precision)));
  return {};
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

Result<StreamPool::Lease> lease(const Model& model, const SpeechSettings& settings, StreamPool& pool) {
  if (settings.decode_steps.value_or(default_steps(model)) == default_steps(model)) return pool.lease();
  SYRINX_TRY(const FlowSchedule schedule, make_schedule(*model.flow_lm(), *settings.decode_steps));
  return pool.lease(schedule);
}

}  // namespace

Result<std::unique_ptr<Synthesizer>> Synthesizer::create(std::shared_ptr<const Model> model, VoiceState voice,
                                                         const SpeechSettings& settings, StreamPool& pool) {
  SYRINX_TRY_VOID(check(settings));
  const NoiseSettings of_noise{.temperature = settings.temperature.value_or(model->config().temperature),
                               .clamp = settings.noise_clamp};
  SYRINX_TRY(Noise noise,
             Noise::create(Noise::Generator::kPhilox, settings.seed, model->config().mimi.latent, of_noise));
  SYRINX_TRY(StreamPool::Lease stream, lease(*model, settings, pool));
  std::unique_ptr<Synthesizer> made(new Synthesizer(std::move(model), settings, std::move(noise), std::move(stream)));
  if (voice) SYRINX_TRY_VOID(made->use_voice(std::move(voice)));
  return made;
}

std::unique_ptr<StreamPool> Synthesizer::make_pool(const Model& model, nn::Runner& runner, StepQueue& queue,
                                                   size_t streams) {
  const Result<FlowSchedule> schedule = make_schedule(*model.flow_lm(), default_steps(model));
  SYRINX_CHECK(schedule.has_value(), "the default schedule");
  return std::make_unique<StreamPool>(model.flow_lm(), model.decoder(), *schedule, runner, queue, streams);
}

Synthesizer::Synthesizer(std::shared_ptr<const Model> model, const SpeechSettings& settings, Noise noise,
                         StreamPool::Lease stream)
    : model_(std::move(model)),
      settings_(settings),
      noise_(std::move(noise)),
      stream_(std::move(stream)),
      block_(stream_.latent()),
      first_(stream_.frame_samples()) {}

Status Synthesizer::use_voice(VoiceState voice) {
  SYRINX_TRY_VOID(check_voice(*voice, *model_->flow_lm()));
  SYRINX_TRY(max_chunk_tokens_, room_after(voice->position));
  voice_ = std::move(voice);
  return {};
}

Status Synthesizer::begin(const Chunk& chunk, int64_t due_ns) {
  SYRINX_CHECK(voice_ != nullptr, "use_voice() comes first");
  const Config& config = model_->config();
  faulty_ = has_first_ = false;
  noise_.fill(block_);
  SYRINX_TRY(has_first_,
             stream_.begin(voice_, chunk.ids, settings_.eos_threshold.value_or(config.eos_threshold),
                           frames_after_end(settings_.frames_after_eos, config.frames_after_eos, chunk.frames_guess),
                           due_ns, block_, first_));
  return {};
}

bool Synthesizer::next(std::span<float> samples, int64_t due_ns) {
  SYRINX_CHECK(samples.size() == first_.size(), "{}", samples.size());
  if (std::exchange(has_first_, false)) {
    std::copy(first_.begin(), first_.end(), samples.begin());
  } else {
    if (!stream_.end().goes_on()) return false;
    noise_.fill(block_);
    if (!stream_.next(block_, samples, due_ns)) return false;
  }
  faulty_ |= stream_.faulty() ||
             !std::all_of(samples.begin(), samples.end(), [](float sample) { return std::isfinite(sample); });
  return true;
}

}  // namespace syrinx::pocket
