// The decoder of the streaming codec: a latent becomes 80 ms of sound at once, without lookahead (spec pocket-tts.md,
// sections 4.1 and 4.2).
//
// Weights (weights.h) are shared, the state belongs to a stream, and a Decoder is the scratch and the order of work,
// for the streams of one thread.  All memory is planned when they are made; decode() allocates nothing.
#pragma once

#include <memory>
#include <span>

#include "models/mimi/seanet.h"
#include "models/mimi/transformer.h"
#include "models/mimi/weights.h"
#include "nn/runner.h"

namespace syrinx::mimi {

struct DecoderState {
  Buffer<float> quantised;  // the projected latent of the frame before, padded
  TransformerState transformer;
  SeanetState seanet;
};

class Decoder {
 public:
  // The runner must outlive it and is used during calls only.
  Decoder(std::shared_ptr<const DecoderWeights> weights, nn::Runner& runner);

  DecoderState make_state() const;  // of a stream that begins
  static void reset(DecoderState& state);

  // latents [F, latent], as the language model's emb_std and emb_mean make them -> samples [F * frame_samples], any F:
  // the samples are those of one frame a call.  They may exceed 1.
  void decode(DecoderState& state, View<const float, 2> latents, std::span<float> samples);

  // One frame as a task of crew() that one member may begin and others join (nn/crew.h): each calls it with its seat.
  // latent [latent], samples [frame_samples].
  nn::Crew& crew() { return crew_; }
  void work_at_frame(nn::Crew::Seat& seat, DecoderState& state, std::span<const float> latent,
                     std::span<float> samples);

  const Config& config() const { return w_->config; }
  // Tests: stages "quantizer", "upsample", "transformer" and "decoder".
  void set_probe(Probe probe) { probe_ = std::move(probe); }

 private:
  void upsample(const nn::Part& part, const DecoderState& state, View<float, 2> rows);

  std::shared_ptr<const DecoderWeights> w_;
  nn::Runner& runner_;
  nn::Crew crew_;
  Seanet seanet_;
  Transformer transformer_;
  Buffer<float> latent_, quantised_;  // padded
  Probe probe_;
};

}  // namespace syrinx::mimi
