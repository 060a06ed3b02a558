// The encoder of the codec: 80 ms of sound become one latent (spec pocket-tts.md, section 4.3).  The maker runs it over
// a whole recording; here it is carried on by a few frames a pass, which gives the same numbers and bounds its memory.
//
// Objects and memory are as in decoder.h.
#pragma once

#include <memory>
#include <span>

#include "models/mimi/seanet.h"
#include "models/mimi/weights.h"
#include "nn/decoder.h"
#include "nn/kv_cache.h"
#include "nn/runner.h"

namespace syrinx::mimi {

struct EncoderState {
  SeanetState seanet;
  nn::KvCache transformer;  // a ring
  Buffer<float> positions;  // those of the frame before, which the downsampling still sees
};

class Encoder {
 public:
  // The runner must outlive it and is used during calls only.
  Encoder(std::shared_ptr<const EncoderWeights> weights, nn::Runner& runner);

  EncoderState make_state() const;  // of a recording that begins
  static void reset(EncoderState& state);

  size_t frames(size_t samples) const {
    return (samples + w_->config.frame_samples() - 1) / w_->config.frame_samples();
  }
  // Samples at the codec's rate, mono -> latents [frames(samples), inner_width].  A rest shorter than a frame is filled
  // with zeros: in a recording that comes in pieces, only the last may have one.
  void encode(EncoderState& state, std::span<const float> samples, View<float, 2> latents);

  const Config& config() const { return w_->config; }
  // Tests: stages "encoder", "transformer" and "latents".
  void set_probe(Probe probe);

 private:
  void pass(nn::Crew::Seat& seat, EncoderState& state, bool first, View<float, 2> latents);
  void keep_positions(EncoderState& state, bool first, size_t frames);

  std::shared_ptr<const EncoderWeights> w_;
  nn::Runner& runner_;
  nn::Crew crew_;
  Seanet seanet_;
  nn::Decoder transformer_;
  Buffer<float> samples_;  // of the pass
  nn::Plane positions_;    // of the frame before, then of the pass
  nn::Plane latents_;      // of the pass
  Probe probe_;
};

}  // namespace syrinx::mimi
