// Whisper's encoder: a window's log-mel frames through two convolutions and a transformer without a mask, then the keys
// and values that the decoder's cross-attention reads (spec whisper.md, sections 2.2 and 2.3; OpenAI's
// whisper/model.py, AudioEncoder).  A position is 20 ms, two frames.
//
// Everything but attention is done by rows: a member of the team takes some rows through all linear layers between two
// attentions, in tiles that stay in its second-level cache.  Results do not depend on how many members there are.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "models/whisper/model.h"
#include "nn/cross_cache.h"
#include "nn/runner.h"
#include "tensor/buffer.h"
#include "tensor/view.h"

namespace syrinx::whisper {

// A window as the decoder reads it: keys and values of each decoder layer, in bf16 under the narrow precisions.
// Written by one encode() at a time, then read by any number of decoders.
struct AudioState : nn::CrossCache {
  using CrossCache::CrossCache;
  // Room for `max_positions`, at most the model's; 0: the model's.
  static AudioState make(const Model& model, size_t max_positions = 0);
};

// Called between jobs of the team, which may do other work meanwhile.
using BetweenJobs = std::function<void()>;

// One thread at a time; the team is borrowed.  All memory is planned when it is made.
class Encoder {
 public:
  Encoder(std::shared_ptr<const Model> model, ThreadTeam& team);

  // mel [2 P, mels], normalised (features.h); P is 1 to the model's positions, and at most the state's room.  Fewer
  // than the model's make a shorter window, for which it was not trained.  Allocates nothing.  With `between` the work
  // is many jobs of the team of a few milliseconds each, else one; the results are the same bits.
  void encode(View<const float, 2> mel, AudioState& audio, const BetweenJobs& between = {});

  // [P, D] of the last encode(), valid until the next.
  View<const float, 2> output() const;
  const Model& model() const { return *model_; }

  // Called with what the two convolutions and the positions make ("conv", 0), with each layer's output ("block", i) and
  // with the last norm's ("encoder", 0), [P, D] each.
  using Probe = std::function<void(std::string_view stage, size_t layer, View<const float, 2> rows)>;
  void set_probe(Probe probe) { probe_ = std::move(probe); }

 private:
  struct Member {
    Buffer<float> normed, wide;  // [kTileRows, D], [kTileRows, the wider of F and 3 D]
  };
  View<float, 2> rows(nn::Plane& plane, Range range) const;
  void check(View<const float, 2> mel, AudioState& audio);
  void encode_in_jobs(View<const float, 2> mel, AudioState& audio, const BetweenJobs& between);
  size_t rows_of_job(size_t products, size_t grain) const;
  size_t attended_units() const;
  size_t products_of_unit() const;
  void pad_mel(const nn::Part& part, View<const float, 2> mel);
  // Each of these does a member's part of a stage, on some of its rows or units.
  void convolve1(const nn::Part& part, Range frames);
  void convolve2(const nn::Part& part, Range positions);
  void linear(int member, const kernels::OwnedMatrix& matrix, View<const float, 2> x, View<const float, 2> addend,
              View<float, 2> y);
  void project(const nn::Part& part, const LayerWeights& layer, Range positions);
  void pack_tile(View<const float, 2> qkv, size_t first);
  void attend(const nn::Part& part, Range units);
  void attend_plain(const nn::Part& part, Range heads);
  void attend_packed(const nn::Part& part, Range units);
  void finish_layer(const nn::Part& part, const LayerWeights& layer, Range positions);
  void finish(const nn::Part& part, AudioState& audio, Range positions);
  void keep_cross(int member, Range range, AudioState& audio);

  std::shared_ptr<const Model> model_;
  nn::Runner runner_;
  nn::Crew crew_;
  Probe probe_;
  size_t positions_ = 0;  // of the window
  DType conv_type_ = DType::kF32;
  bool packs_ = false;            // attends in bf16 (packed_attention.h), else in f32
  Buffer<std::byte> mel_, conv_;  // rows that a convolution reads, one of zeros at either end
  nn::Plane x_, qkv_,
      attended_;             // [P, D]; [P, 3 D], or [P, D] of queries alone where keys and values are packed; [P, D]
  size_t head_bytes_ = 0;    // of a packed head
  Buffer<std::byte> heads_;  // [heads, head_bytes_]
  std::vector<Member> members_;
};

}  // namespace syrinx::whisper
