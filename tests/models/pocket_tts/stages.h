// Language model, head and whole generations on the arrays of a reference of Pocket TTS (docs/pocket_tts.md, "What is
// checked"), every stage compared.  For the tests of the small checkpoints and for the program of bench/parity.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../seen_stages.h"
#include "models/pocket_tts/chunk_speaker.h"
#include "models/pocket_tts/flow_head.h"
#include "models/pocket_tts/flow_lm.h"

namespace syrinx::pocket {

using Differences = Result<std::vector<StageDifference>>;

// voice.latents, text.ids and step.latent into voice.*, text.* and step.layer.I, .hidden, .logit: the maker's latents
// go in, so that each step stands for itself.
Differences flow_lm_stages(FlowLm& flow, const Safetensors& reference);

// step.hidden and step.noise into step.condition, .input, .block.I, .velocity, .latent, and step.time.K.
Differences flow_head_stages(FlowHead& head, const FlowLmWeights& weights, const Safetensors& reference);

// One text of the reference, spoken by the maker's generate_audio.
struct Generation {
  struct Chunk {
    std::vector<int32_t> ids;
    size_t max_steps = 0, frames_after_end = 0;
    size_t steps = 0, frames = 0;  // computed, spoken
    std::optional<size_t> end_step;
  };
  std::string name;   // "generate.0", before its arrays
  std::string voice;  // the file of the voice in the reference's folder, or empty: voice.safetensors
  float eos_threshold = 0.0f;
  std::vector<Chunk> chunks;
};

// Those of reference.json; kDataLoss where a field is missing.
Result<std::vector<Generation>> read_generations(const Json& facts, float eos_threshold);

// Language model, head and rules of the end in free running with the maker's noise: NAME.logit, .denormalised.
// kInternal: steps, frames or the end of a chunk are not the maker's.
Differences generated_latents(const Generation& generation, const std::shared_ptr<const FlowLmState>& voice,
                              FlowLm& flow, FlowHead& head, const Safetensors& reference);

// The same through ChunkSpeaker: NAME.samples.
Differences generated_sound(const Generation& generation, const std::shared_ptr<const FlowLmState>& voice,
                            ChunkSpeaker& speaker, const Safetensors& reference);

}  // namespace syrinx::pocket
