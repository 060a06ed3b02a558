// Voices made ready to speak with: what the language model remembers of them (spec pocket-tts.md, section 5).  A voice
// is a FlowLmState that nobody writes to any more; any number of streams begin behind it.
//
// Each call has scratch of its own and uses the runner's team, in turns of a few milliseconds, of three frames of sound
// or FlowLm::kRowsOfJob positions at most: a caller that shares the team with others gives an `in_turn` that runs a
// part of the work while nothing else runs there.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "base/result.h"
#include "models/pocket_tts/flow_lm.h"
#include "models/pocket_tts/model.h"
#include "models/pocket_tts/voice_file.h"
#include "nn/runner.h"

namespace syrinx::pocket {

using VoiceState = std::shared_ptr<const FlowLmState>;

using InTurn = std::function<void(const std::function<void()>& work)>;
inline void at_once(const std::function<void()>& work) { work(); }

// Makes a voice of a file that parse_voice_file() read for this model: keys and values are copied, rounded where the
// model keeps bf16; a prompt is run through the model.
Result<VoiceState> make_voice(const Model& model, const VoiceFile& file, nn::Runner& runner,
                              const InTurn& in_turn = at_once);

// Makes a voice of a recording that prepare_recording() brought to the codec's rate.  kUnsupported: weights without the
// encoder.  kLimitExceeded: more than kMaxPositions.
Result<VoiceState> clone_voice(const Model& model, std::span<const float> recording, nn::Runner& runner,
                               const InTurn& in_turn = at_once);

// For write_voice_file(); a copy, widened to f32.
Voice exported(const FlowLmState& state);

}  // namespace syrinx::pocket
