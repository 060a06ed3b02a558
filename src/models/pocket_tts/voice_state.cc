#include "models/pocket_tts/voice_state.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "models/mimi/encoder.h"

namespace syrinx::pocket {
namespace {

constexpr size_t kFramesATurn = 3;  // of the encoder: one pass
constexpr size_t kPassRows = 126;   // of the language model; cut into turns as FlowLm cuts it

// Positions that a prompt of so many rows takes.
size_t positions_of(const FlowLmWeights& weights, size_t rows) {
  return rows + (weights.bos_before_voice.empty() ? 0 : 1);
}

Result<FlowLmState> from_cache(const FlowLmWeights& weights, const Voice& voice) {
  SYRINX_TRY(FlowLmState state, FlowLmState::make(weights, voice.positions));
  for (size_t i = 0; i < voice.layers.size(); ++i) {
    state.set_layer(i, voice.layers[i].keys, voice.layers[i].values);
  }
  state.position = voice.positions;
  return state;
}

// Rows [n, width] become a state, pass by pass.
using Prefill = Status (FlowLm::*)(View<const float, 2>, FlowLmState&, const nn::BetweenJobs&);
Result<FlowLmState> from_rows(const std::shared_ptr<const FlowLmWeights>& weights, View<const float, 2> rows,
                              Prefill prefill, nn::Runner& runner, const InTurn& in_turn) {
  const size_t count = rows.extent(0);
  SYRINX_TRY(FlowLmState state, FlowLmState::make(*weights, positions_of(*weights, count)));
  std::optional<FlowLm> model;
  in_turn([&] { model.emplace(weights, runner); });
  Status status;
  for (size_t first = 0; status && first < count; first += kPassRows) {
    const size_t pass = std::min(kPassRows, count - first);
    const auto turns = static_cast<int>((pass + FlowLm::kRowsOfJob - 1) / FlowLm::kRowsOfJob);
    for (int i = 0; status && i < turns; ++i) {
      const Range own = split_range(pass, i, turns);
      const View<const float, 2> part(rows.row(first + own.begin), {own.end - own.begin, rows.extent(1)});
      in_turn([&] { status = ((*model).*prefill)(part, state, {}); });
    }
  }
  if (!status) return tl::unexpected(std::move(status).error());
  return state;
}

Result<std::vector<float>> encode(const Model& model, std::span<const float> recording, nn::Runner& runner,
                                  const InTurn& in_turn) {
  SYRINX_TRY(const std::shared_ptr<const mimi::EncoderWeights> weights, model.load_encoder());
  std::optional<mimi::Encoder> encoder;
  in_turn([&] { encoder.emplace(weights, runner); });
  const size_t frames = encoder->frames(recording.size()), width = encoder->config().inner_width;
  const size_t frame_samples = encoder->config().frame_samples();
  if (positions_of(*model.flow_lm(), frames) > kMaxPositions)
    return fail(Code::kLimitExceeded, "a voice of {} frames, the limit is {}; use a shorter recording", frames,
                kMaxPositions);
  std::vector<float> latents(frames * width);
  mimi::EncoderState state = encoder->make_state();
  for (size_t first = 0; first < frames; first += kFramesATurn) {
    const size_t count = std::min(kFramesATurn, frames - first), begin = first * frame_samples;
    const std::span<const float> part =
        recording.subspan(begin, std::min(count * frame_samples, recording.size() - begin));
    in_turn([&] { encoder->encode(state, part, {latents.data() + first * width, {count, width}}); });
  }
  return latents;
}

VoiceState shared(FlowLmState state) { return std::make_shared<const FlowLmState>(std::move(state)); }

}  // namespace

Result<VoiceState> make_voice(const Model& model, const VoiceFile& file, nn::Runner& runner, const InTurn& in_turn) {
  const std::shared_ptr<const FlowLmWeights> weights = model.flow_lm();
  if (const auto* const voice = std::get_if<Voice>(&file)) {
    SYRINX_TRY(FlowLmState state, from_cache(*weights, *voice));
    return shared(std::move(state));
  }
  const VoicePrompt& prompt = std::get<VoicePrompt>(file);
  const View<const float, 2> rows(prompt.rows.data(), {prompt.positions, weights->config.transformer.width});
  SYRINX_TRY(FlowLmState state, from_rows(weights, rows, &FlowLm::prefill_projected, runner, in_turn));
  return shared(std::move(state));
}

Result<VoiceState> clone_voice(const Model& model, std::span<const float> recording, nn::Runner& runner,
                               const InTurn& in_turn) {
  const std::shared_ptr<const FlowLmWeights> weights = model.flow_lm();
  SYRINX_TRY(const std::vector<float> latents, encode(model, recording, runner, in_turn));
  const View<const float, 2> rows(latents.data(), {latents.size() / weights->voice_width, weights->voice_width});
  SYRINX_TRY(FlowLmState state, from_rows(weights, rows, &FlowLm::prefill_voice, runner, in_turn));
  return shared(std::move(state));
}

Voice exported(const FlowLmState& state) {
  Voice voice;
  voice.positions = state.position;
  for (size_t i = 0; i < state.layers; ++i) voice.layers.push_back({state.layer_keys(i), state.layer_values(i)});
  return voice;
}

}  // namespace syrinx::pocket
