// One stream's speech: chunks of text after a voice, frame by frame, with noise drawn from a seed (spec pocket-tts.md,
// section 6; the maker's pocket_tts/models/tts_model.py).
//
//   begin(chunk)    the voice and the text, in one pass
//   next(samples)   80 ms of sound, until the chunk has been spoken
//
// Noise: one sequence a stream, Philox of the seed (noise.h, base/rng.h), a block of as many numbers as a latent has
// for each step and for a chunk that could not begin; the step at which a chunk turns out to have ended has used a
// block too, and the next chunk goes on with the one after.  So the same seed, chunks, build and number of threads give
// the same samples.
//
// Model and voice are shared and constant.  One thread at a time; any number of them may speak through one pool, which
// computes together what they ask for at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/families/pocket_tts/stream_pool.h"
#include "models/pocket_tts/chunk_planner.h"
#include "models/pocket_tts/model.h"
#include "models/pocket_tts/noise.h"
#include "models/pocket_tts/voice_state.h"
#include "nn/runner.h"

namespace syrinx::pocket {

// What is absent is the checkpoint's, or the maker's default.
struct SpeechSettings {
  std::optional<float> temperature = {};        // 0 to 100; the noise has its square root as standard deviation
  std::optional<float> noise_clamp = {};        // above 0; else none
  std::optional<float> eos_threshold = {};      // of the raw logit; lower ends chunks earlier
  std::optional<size_t> frames_after_eos = {};  // 0 to 1000, of 80 ms
  std::optional<size_t> decode_steps = {};      // evaluations of the flow head a frame; else 1, for flow matching 16
  uint64_t seed = 0;
};

class Synthesizer {
 public:
  // kInvalidArgument: a setting out of its range, another model's voice.  kLimitExceeded: a voice that leaves no room
  // to speak.  kUnavailable: all of the pool's streams speak.  The pool, of the same model, must outlive it.  Without a
  // voice (null) use_voice() comes before begin().
  static Result<std::unique_ptr<Synthesizer>> create(std::shared_ptr<const Model> model, VoiceState voice,
                                                     const SpeechSettings& settings, StreamPool& pool);
  static std::unique_ptr<StreamPool> make_pool(const Model& model, nn::Runner& runner, StepQueue& queue,
                                               size_t streams);

  size_t frame_samples() const { return stream_.frame_samples(); }  // kSampleRateHz, mono
  // What ChunkPlanner should keep to: kMaxChunkTokens, or fewer after a long voice.
  size_t max_chunk_tokens() const { return max_chunk_tokens_; }

  // Another voice for the chunks begun from here on; noise goes on.  Errors as create()'s, the voice then stays.
  Status use_voice(VoiceState voice);
  // What the last chunk still had to say is dropped.  Computes its first frame, too, which next() then gives.  Errors
  // of ChunkSpeaker::begin.  `due_ns`, here and below: when the listener runs out of sound; of the pool's streams the
  // one that does so first goes first.
  Status begin(const Chunk& chunk, int64_t due_ns = kDueAtOnce);
  // One frame into samples [frame_samples()], which may exceed 1; false, and no samples, once the chunk has been
  // spoken. Allocates nothing.
  bool next(std::span<float> samples, int64_t due_ns = kDueAtOnce);

  // As StreamPool::Lease's.
  void ask_first(std::function<bool()> is_wanted) { stream_.ask_first(std::move(is_wanted)); }
  // How long the calls above have waited for other streams of the pool, all together.
  double waited_ms() const { return stream_.waited_ms(); }
  // Of the chunk begun last.
  const SpeechEnd& end() const { return stream_.end(); }
  // A frame held a value that is not a number; what follows would be noise or silence.
  bool faulty() const { return faulty_; }

 private:
  Synthesizer(std::shared_ptr<const Model> model, const SpeechSettings& settings, Noise noise,
              StreamPool::Lease stream);

  std::shared_ptr<const Model> model_;
  VoiceState voice_;  // null until there is one
  SpeechSettings settings_;
  Noise noise_;
  StreamPool::Lease stream_;
  std::vector<float> block_;  // of noise
  std::vector<float> first_;  // frame of the chunk
  bool has_first_ = false;    // and next() has not given it yet
  size_t max_chunk_tokens_ = kMaxChunkTokens;
  bool faulty_ = false;
};

}  // namespace syrinx::pocket
