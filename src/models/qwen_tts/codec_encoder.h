// The codec's encoder: a recording becomes frames of codes (spec qwen3-tts.md, section 5.3; transformers' MimiModel,
// with the maker's choice of codebooks).  The maker runs it over the whole recording; here it is carried on by some
// frames a pass, which gives the same codes and bounds its memory but for the keys and values of all positions: 0.8 MB
// a second at the published sizes.
//
// Weights are shared; a state belongs to a recording; an encoder is the scratch of one thread and runs on the team of
// its runner, in jobs between which others may have the team (nn/runner.h).  Codes do not depend on threads, nor on the
// pieces in which a recording comes.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "models/mimi/seanet.h"
#include "models/qwen_tts/codec_encoder_weights.h"
#include "nn/decoder.h"
#include "nn/kv_cache.h"
#include "nn/runner.h"

namespace syrinx::qwen_tts {

struct CodecEncoderState {
  mimi::SeanetState seanet;
  nn::KvCache transformer;  // linear
  Buffer<float> positions;  // those of the frame before, which the downsampling still sees
  bool ended = false;       // a piece was no whole number of frames, and is the last one
};

class CodecEncoder {
 public:
  // The runner must outlive it and is used during calls only.
  CodecEncoder(std::shared_ptr<const CodecEncoderWeights> weights, nn::Runner& runner);

  // For a recording of so many samples, which begins.  kLimitExceeded: longer than kMaxPositions or kMaxCacheBytes of
  // nn/kv_cache.h let it be.
  Result<CodecEncoderState> make_state(size_t samples) const;

  size_t sample_rate() const { return w_->sample_rate; }
  size_t codebooks() const { return w_->config.used_codebooks; }
  size_t frames(size_t samples) const { return pieces_of(samples, w_->config.frame_samples()); }
  // Samples at the codec's rate, mono -> codes [frames(samples), codebooks()].  A recording that comes in pieces is cut
  // at whole frames; its last piece may end anywhere, and nothing may follow then.  All pieces together have at most
  // the samples of make_state().  Allocates nothing.
  void encode(CodecEncoderState& state, std::span<const float> samples, View<int32_t, 2> codes);

  // Tests: stages "seanet" by the maker's number, "transformer" by layer, "downsample"; rows of a pass.
  void set_probe(mimi::Probe probe);

 private:
  static size_t pieces_of(size_t count, size_t size) { return (count + size - 1) / size; }
  void run_seanet(CodecEncoderState& state, std::span<const float> samples, View<float, 2> positions);
  void run_transformer();
  void keep_positions(CodecEncoderState& state, bool first, size_t positions);
  void downsample(nn::Crew::Seat& seat, CodecEncoderState& state, bool first, size_t positions);
  void quantise(const nn::Part& part, View<int32_t, 2> codes);

  std::shared_ptr<const CodecEncoderWeights> w_;
  nn::Runner& runner_;
  nn::Crew crew_;
  mimi::Seanet seanet_;
  nn::Decoder transformer_;
  nn::Plane positions_;     // of the frame before, then of the pass
  nn::Plane latents_;       // [frames of a pass, width]
  nn::Plane projected_;     // [frames of a pass, 2 row_width]
  Buffer<float> searches_;  // of each member, scratch of the search
  mimi::Probe probe_;
};

}  // namespace syrinx::qwen_tts
