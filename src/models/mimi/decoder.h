// The decoder of the streaming codec: a latent becomes 80 ms of sound at once, without lookahead (spec pocket-tts.md,
// sections 4.1 and 4.2).
//
// Weights (weights.h) are shared, the state belongs to a stream, and a Decoder is the scratch and the order of work,
// for the streams of one thread.  All memory is planned when they are made; decode() allocates nothing.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/mimi/seanet.h"
#include "models/mimi/weights.h"
#include "nn/decoder.h"
#include "nn/kv_cache.h"
#include "nn/runner.h"

namespace syrinx::mimi {

struct DecoderState {
  Buffer<float> quantised;  // the projected latent of the frame before, padded
  nn::KvCache transformer;  // a ring
  SeanetState seanet;
};

class Decoder {
 public:
  // The runner must outlive it and is used during calls only.  Up to `streams` streams are decoded together.
  Decoder(std::shared_ptr<const DecoderWeights> weights, nn::Runner& runner, size_t streams = 1);

  DecoderState make_state() const;  // of a stream that begins
  static void reset(DecoderState& state);

  // latents [F, latent], as the language model's emb_std and emb_mean make them -> samples [F * frame_samples], any F:
  // the samples are those of one frame a call.  They may exceed 1.
  void decode(DecoderState& state, View<const float, 2> latents, std::span<float> samples);

  struct Frame {
    DecoderState* state = nullptr;
    std::span<const float> latent;  // [latent]
    std::span<float> samples;       // [frame_samples]
  };
  // A frame of each of some different streams: the transformer's weights are read once for all of them.  Each gets, to
  // the last bit, what it gets alone.
  void decode(std::span<const Frame> frames);
  // The same in three parts, as a task of crew() that one member may begin and others join (nn/crew.h): the middle one
  // is called by each with its seat, the others between jobs of the team.
  nn::Crew& crew() { return crew_; }
  void begin_frames(std::span<const Frame> frames);
  void work_at_frames(nn::Crew::Seat& seat);
  void end_frames() { transformer_.end(); }

  const Config& config() const { return w_->config; }
  // Tests: stages "quantizer", "upsample", "transformer" and "decoder".
  void set_probe(Probe probe);

 private:
  void upsample(const nn::Part& part);

  std::shared_ptr<const DecoderWeights> w_;
  nn::Runner& runner_;
  nn::Crew crew_;
  Seanet seanet_;
  nn::Decoder transformer_;
  std::vector<Frame> frames_;            // of the call
  std::vector<nn::Decoder::Rows> rows_;  // those of each
  nn::Plane latents_, quantised_;        // [streams, latent], [streams, width]
  Probe probe_;
};

}  // namespace syrinx::mimi
