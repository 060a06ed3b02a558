#include "stages.h"

#include "models/mimi/decoder.h"
#include "models/mimi/encoder.h"

namespace syrinx::mimi {

Probe probe_into(SeenStages& seen, const std::string& prefix) {
  return [&seen, prefix](std::string_view stage, size_t index, View<const float, 2> rows) {
    const bool numbered = stage == "transformer" || stage == "decoder" || stage == "encoder";
    seen.add(prefix + "." + std::string(stage) + (numbered ? "." + std::to_string(index) : ""), rows);
  };
}

Result<std::vector<StageDifference>> encoder_stages(std::shared_ptr<const EncoderWeights> weights,
                                                    std::span<const float> recording, const Safetensors& reference,
                                                    nn::Runner& runner) {
  Encoder encoder(std::move(weights), runner);
  EncoderState state = encoder.make_state();
  SeenStages seen;
  encoder.set_probe(probe_into(seen, "voice"));
  const size_t frames = encoder.frames(recording.size()), width = encoder.config().inner_width;
  std::vector<float> latents(frames * width);
  encoder.encode(state, recording, {latents.data(), {frames, width}});
  return seen.differences(reference);
}

Result<std::vector<StageDifference>> decoder_stages(std::shared_ptr<const DecoderWeights> weights,
                                                    const Safetensors& reference, nn::Runner& runner) {
  SYRINX_TRY(const std::vector<float> latents, f32_array(reference, "mimi.denormalised"));
  Decoder decoder(std::move(weights), runner);
  DecoderState state = decoder.make_state();
  SeenStages seen;
  decoder.set_probe(probe_into(seen, "mimi"));
  const size_t width = decoder.config().latent;
  if (latents.size() % width != 0)
    return fail(Code::kDataLoss, "mimi.denormalised of the reference is another model's");
  std::vector<float> samples(decoder.config().frame_samples());
  for (size_t at = 0; at + width <= latents.size(); at += width) {
    decoder.decode(state, {&latents[at], {1, width}}, samples);
    seen.add("mimi.samples", samples);
  }
  return seen.differences(reference);
}

}  // namespace syrinx::mimi
