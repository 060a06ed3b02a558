// The codec on the arrays of a reference of Pocket TTS (docs/pocket_tts.md, "What is checked"), every stage compared.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "../seen_stages.h"
#include "models/mimi/seanet.h"
#include "models/mimi/weights.h"
#include "nn/runner.h"

namespace syrinx::mimi {

// Rows of a stage under "PREFIX.STAGE", with its number where there are several.  `seen` must outlive the probe.
Probe probe_into(SeenStages& seen, const std::string& prefix);

// A prepared recording into voice.encoder.K, voice.transformer.I and voice.latents.
Result<std::vector<StageDifference>> encoder_stages(std::shared_ptr<const EncoderWeights> weights,
                                                    std::span<const float> recording, const Safetensors& reference,
                                                    nn::Runner& runner);

// mimi.denormalised, a frame a call, into mimi.quantizer, .upsample, .transformer.I, .decoder.K and .samples.
Result<std::vector<StageDifference>> decoder_stages(std::shared_ptr<const DecoderWeights> weights,
                                                    const Safetensors& reference, nn::Runner& runner);

}  // namespace syrinx::mimi
