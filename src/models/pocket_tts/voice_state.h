// Voices made ready to speak with: what the language model remembers of them (spec pocket-tts.md, section 5).  A voice
// is a FlowLmState that nobody writes to any more; any number of streams begin with a copy of it.
//
// Each call has scratch of its own and uses the runner's team while it runs: one call at a time a runner.
#pragma once

#include <memory>
#include <span>

#include "base/result.h"
#include "models/pocket_tts/flow_lm.h"
#include "models/pocket_tts/model.h"
#include "models/pocket_tts/voice_file.h"
#include "nn/runner.h"

namespace syrinx::pocket {

using VoiceState = std::shared_ptr<const FlowLmState>;

// Of what parse_voice_file() read for this model: keys and values are copied, a prompt is run through the model.
Result<VoiceState> make_voice(const Model& model, const VoiceFile& file, nn::Runner& runner);

// Of a recording that prepare_recording() made ready at the codec's rate.  kUnsupported: weights without the encoder.
// kLimitExceeded: more than kMaxPositions.
Result<VoiceState> clone_voice(const Model& model, std::span<const float> recording, nn::Runner& runner);

// For write_voice_file(); a copy.
Voice exported(const FlowLmState& state);

}  // namespace syrinx::pocket
