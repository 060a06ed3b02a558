// Speaks a chunk of text after a voice, a frame of 80 ms at a time: language model, flow head, end of speech and codec
// in the order of the maker's loop (spec pocket-tts.md, section 6; the maker's pocket_tts/models/tts_model.py).
//
//   begin(voice, ids)   a copy of the voice's positions, the text in one pass, a fresh codec
//   next(noise, out)    one frame, until it says that there is none
//
// Weights and voices are shared and constant; a ChunkSpeaker serves one stream from one thread, on the runner's team.
// next() allocates nothing; begin() does only when a chunk needs more positions than any before it.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "models/mimi/decoder.h"
#include "models/pocket_tts/flow_head.h"
#include "models/pocket_tts/flow_lm.h"
#include "models/pocket_tts/speech_end.h"

namespace syrinx::pocket {

// A chunk's first samples rise in a straight line from 0 to 1, against the click of a fresh codec.
inline constexpr size_t kFadeInSamples = 120;

class ChunkSpeaker {
 public:
  // The runner is borrowed and must outlive this.
  ChunkSpeaker(const std::shared_ptr<const FlowLmWeights>& flow, std::shared_ptr<const mimi::DecoderWeights> codec,
               FlowSchedule schedule, nn::Runner& runner);

  size_t latent() const { return latent_.size(); }                            // numbers of noise a frame
  size_t frame_samples() const { return decoder_.config().frame_samples(); }  // 24 kHz, mono

  // Starts a chunk; what the last one still had to say is dropped.  frames_after: speech_end.h.
  // kInvalidArgument: a voice of another model, a token that the table does not have.  kLimitExceeded: voice, text and
  // speech together need more than kMaxPositions.
  Status begin(const FlowLmState& voice, std::span<const int32_t> ids, float eos_threshold, size_t frames_after);
  // noise [latent()] -> samples [frame_samples()]; they may exceed 1.  False, and no samples, once the chunk has been
  // spoken; the step that finds out has used its noise.
  bool next(std::span<const float> noise, std::span<float> samples);

  // Of the chunk begun last: steps, frames, and whether the model ended or the limit did.
  const SpeechEnd& end() const { return end_; }

 private:
  std::shared_ptr<const FlowLmWeights> weights_;
  FlowLm flow_;
  FlowHead head_;
  mimi::Decoder decoder_;
  mimi::DecoderState codec_;
  FlowLmState state_;
  SpeechEnd end_{0.0f, 0, 0};
  size_t risen_ = 0;                          // samples of the chunk's rise so far
  std::vector<float> latent_, denormalised_;  // [X]
};

}  // namespace syrinx::pocket
