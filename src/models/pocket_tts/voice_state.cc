#include "models/pocket_tts/voice_state.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "models/mimi/encoder.h"

namespace syrinx::pocket {
namespace {

// Positions that a prompt of so many rows takes.
size_t positions_of(const FlowLmWeights& weights, size_t rows) {
  return rows + (weights.bos_before_voice.empty() ? 0 : 1);
}

Result<FlowLmState> from_cache(const FlowLmWeights& weights, const Voice& voice) {
  SYRINX_TRY(FlowLmState state, FlowLmState::make(weights, voice.positions));
  for (size_t i = 0; i < voice.layers.size(); ++i) {
    std::copy(voice.layers[i].keys.begin(), voice.layers[i].keys.end(), state.layer_keys(i).row(0));
    std::copy(voice.layers[i].values.begin(), voice.layers[i].values.end(), state.layer_values(i).row(0));
  }
  state.position = voice.positions;
  return state;
}

Result<FlowLmState> from_prompt(const std::shared_ptr<const FlowLmWeights>& weights, const VoicePrompt& prompt,
                                nn::Runner& runner) {
  SYRINX_TRY(FlowLmState state, FlowLmState::make(*weights, positions_of(*weights, prompt.positions)));
  FlowLm model(weights, runner);
  SYRINX_TRY_VOID(
      model.prefill_projected({prompt.rows.data(), {prompt.positions, weights->config.transformer.width}}, state));
  return state;
}

VoiceState shared(FlowLmState state) { return std::make_shared<const FlowLmState>(std::move(state)); }

}  // namespace

Result<VoiceState> make_voice(const Model& model, const VoiceFile& file, nn::Runner& runner) {
  if (const auto* const voice = std::get_if<Voice>(&file)) {
    SYRINX_TRY(FlowLmState state, from_cache(*model.flow_lm(), *voice));
    return shared(std::move(state));
  }
  SYRINX_TRY(FlowLmState state, from_prompt(model.flow_lm(), std::get<VoicePrompt>(file), runner));
  return shared(std::move(state));
}

Result<VoiceState> clone_voice(const Model& model, std::span<const float> recording, nn::Runner& runner) {
  const std::shared_ptr<const FlowLmWeights> weights = model.flow_lm();
  std::vector<float> latents;
  size_t frames = 0;
  {
    SYRINX_TRY(const std::shared_ptr<const mimi::EncoderWeights> read, model.load_encoder());
    mimi::Encoder encoder(read, runner);
    frames = encoder.frames(recording.size());
    if (positions_of(*weights, frames) > kMaxPositions)
      return fail(Code::kLimitExceeded, "a voice of {} frames, the limit is {}; use a shorter recording", frames,
                  kMaxPositions);
    latents.resize(frames * weights->voice_width);
    mimi::EncoderState state = encoder.make_state();
    encoder.encode(state, recording, {latents.data(), {frames, weights->voice_width}});
  }
  SYRINX_TRY(FlowLmState state, FlowLmState::make(*weights, positions_of(*weights, frames)));
  FlowLm lm(weights, runner);
  SYRINX_TRY_VOID(lm.prefill_voice({latents.data(), {frames, weights->voice_width}}, state));
  return shared(std::move(state));
}

Voice exported(const FlowLmState& state) {
  Voice voice;
  voice.positions = state.position;
  const size_t count = state.position * state.key_width;
  for (size_t i = 0; i < state.layers; ++i) {
    const float* const keys = state.layer_keys(i).row(0);
    const float* const values = state.layer_values(i).row(0);
    voice.layers.push_back({{keys, keys + count}, {values, values + count}});
  }
  return voice;
}

}  // namespace syrinx::pocket
