// The encoder on whole recordings (spec transducer-asr.md, sections 3.1 to 3.5).
//
// Scratch of one team of threads, which grows with the longest recording; one thread at a time.
#pragma once

#include <memory>
#include <vector>

#include "kernels/relative_attention.h"
#include "models/transducer/encoder_layers.h"
#include "models/transducer/position_table.h"
#include "models/transducer/subsampling.h"
#include "models/transducer/tile_layers.h"

namespace syrinx::transducer {

// The keys that each of `frames` queries sees (section 3.4); the second writes them over `out`.
std::vector<kernels::KeyRange> visible_keys(size_t frames, ContextStyle style, AttentionContext context);
void visible_keys(size_t frames, ContextStyle style, AttentionContext context, std::vector<kernels::KeyRange>& out);

class Encoder : private EncoderLayers {
 public:
  Encoder(const std::shared_ptr<const EncoderWeights>& weights, nn::Runner& runner);

  using EncoderLayers::config;
  using EncoderLayers::set_probe;  // "pre", "layer0.ff1", "layer0.att", "layer0.conv", "layer0", "layer1", ...

  // Prompt row of the next recordings, for models with EncoderConfig::prompt: a row below its count.
  void set_prompt(size_t row);
  // Features [T, mels] to frames [T', d], valid until the next call; T' is EncoderConfig::frames(T).  At least one
  // frame of features.  With `between` in many jobs of the team, of a few milliseconds each where the recording is
  // long; the frames are the same bits.  This object is not to be used meanwhile.
  View<const float, 2> encode(View<const float, 2> mels, AttentionContext context, const BetweenJobs& between = {});
  // The same with the checkpoint's default context.
  View<const float, 2> encode(View<const float, 2> mels) { return encode(mels, config().contexts.front()); }

 private:
  void attend(const nn::Part& part, size_t layer) override;
  void convolve(const nn::Part& part, size_t layer) override;
  void run_layer(nn::Crew::Seat& seat, size_t index) override;
  bool run_layer_in_jobs(size_t index, const BetweenJobs& between) override;
  size_t rows_of_job() const;
  void attend_heads(int member, Range heads, size_t layer);
  void convolve_rows(Range own, size_t layer);
  size_t prompt_of(size_t /*row*/) const override { return prompt_; }
  void make_room(size_t frames, AttentionContext context);

  TileLayers tiles_;
  Subsampler subsampler_;
  SubsamplingState subsampling_;
  PositionTable positions_;
  std::vector<kernels::KeyRange> sees_;
  size_t prompt_;
  DType attention_type_;  // of the products of attention
};

}  // namespace syrinx::transducer
