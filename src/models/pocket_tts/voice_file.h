// Voices as files (spec pocket-tts.md, sections 5.2 and 5.3; the maker's pocket_tts/models/model_state.py): safetensors
// that hold either what the language model remembers of a recording, keys and values of each layer, or, for checkpoints
// of 2026-01, the rows that it is to be fed.
//
// A file fits one language model: layers and widths are checked here, that the weights are the same cannot be.  Values
// are read as BF16, F16 or F32 and held in f32.  Pure, thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "models/pocket_tts/config.h"

namespace syrinx::pocket {

// Eight minutes; half a minute is 375.  A stream of kMaxPositions (flow_lm.h) then still has room for a chunk.
inline constexpr size_t kMaxVoicePositions = 6144;

// Keys and values of one layer; heads side by side, keys rotated to their positions.
struct VoiceLayer {
  std::vector<float> keys;    // [T, key_width]
  std::vector<float> values;  // [T, key_width]
};

struct Voice {
  size_t positions = 0;  // T
  std::vector<VoiceLayer> layers;
};

// Projected conditioning, to be run through the language model from position 0.
struct VoicePrompt {
  size_t positions = 0;     // T
  std::vector<float> rows;  // [T, width]
};

using VoiceFile = std::variant<Voice, VoicePrompt>;

// `name` stands in messages.  kDataLoss: malformed, or a value that is not a number; kUnsupported: made for another
// model, padded, or a batch of voices, or a prompt where the model has a vector before the voice (section 5.3: such
// files are older than those models, and of another space of the same width); kLimitExceeded: more than
// kMaxVoicePositions.
Result<VoiceFile> parse_voice_file(std::span<const std::byte> bytes, const std::string& name,
                                   const FlowLmConfig& config);

// The file of a voice as the maker's package 4.0 writes it, f32.  `voice` must be one of a model of this configuration.
std::string write_voice_file(const Voice& voice, const FlowLmConfig& config);

}  // namespace syrinx::pocket
