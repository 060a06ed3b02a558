// The dimensions of a Whisper model, taken from the shapes of its tensors, and what its JSON files say beside them
// (spec whisper.md, sections 2.1 and 3; the makers' config.json and generation_config.json).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace syrinx::whisper {

inline constexpr int kSampleRateHz = 16000;
inline constexpr size_t kHopSamples = 160;       // 10 ms, a frame of the log-mel spectrum
inline constexpr size_t kWindowFrames = 3000;    // 30 s
inline constexpr size_t kFramesPerPosition = 2;  // an encoder's position is 20 ms

// A head of a decoder layer whose cross-attention follows the words.
struct AlignmentHead {
  size_t layer = 0, head = 0;
};

struct Config {
  size_t width = 0;  // D, a multiple of 32
  size_t encoder_layers = 0, decoder_layers = 0;
  size_t encoder_heads = 0, decoder_heads = 0;
  size_t encoder_hidden = 0, decoder_hidden = 0;  // feed-forward widths
  size_t mels = 0;                                // 80, or 128 from large-v3 on
  size_t vocabulary = 0;                          // V: 51864 (.en), 51865, 51866 from large-v3 on
  size_t text_positions = 0;                      // 448
  size_t audio_positions = 0;                     // 1500

  // Empty, or zero, where no file says so.  Transcriptions take the suppressed ids and the languages from the
  // vocabulary (rules.h, tokens.h), as the maker's do; measurements of speed keep to these.
  std::vector<AlignmentHead> alignment_heads;
  std::vector<int32_t> suppress_ids;        // never sampled
  std::vector<int32_t> suppress_ids_begin;  // nor as the first
  std::vector<int32_t> language_ids;

  bool multilingual() const { return vocabulary >= 51865; }
};

// kDataLoss or kLimitExceeded: one sentence about a number that no model can have, or that does not go with another.
// `name` stands in messages.
Status check_config(const Config& config, const std::string& name);

// Adds what a JSON text says: CTranslate2's config.json (alignment_heads, suppress_ids, suppress_ids_begin, lang_ids),
// or transformers' config.json and generation_config.json (encoder_attention_heads, decoder_attention_heads,
// suppress_tokens, begin_suppress_tokens, lang_to_id, alignment_heads).  What is not there stays as it was.  kDataLoss
// for values of another kind; kUnsupported for an activation that is no GELU.
Status add_json(std::string_view text, const std::string& name, Config& config);

}  // namespace syrinx::whisper
