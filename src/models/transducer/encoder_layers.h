// The blocks of a Conformer encoder on rows of any owner (spec transducer-asr.md, section 3.5):
//
//   x += 1/2 FF1(x),  x += attention(LN x),  x += convolution(LN x),  x += 1/2 FF2(x),  x = LN x
//
// and behind them, in models with a language prompt, the prompt's product with the frames (encoder_weights.h).
//
// A row takes keys of attention and neighbours of the convolution from other rows; derived classes say from which: a
// whole recording (encoder.h) or the caches of streams (stream_encoder.h).
//
// Scratch of one team of threads; one thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "models/transducer/encoder_weights.h"
#include "nn/crew.h"
#include "nn/runner.h"

namespace syrinx::transducer {

// Sees x behind each block, and in the first also behind its parts; for tests.  Called by one thread.  In a team of one
// it may write x too, from which the next stage then starts.
using LayerProbe = std::function<void(const std::string& stage, View<float, 2> x)>;

// Called between jobs of the team, which may do other work meanwhile.
using BetweenJobs = std::function<void()>;

class EncoderLayers {
 public:
  // With `streams`, each row gets the numbers that it gets alone, to the last bit.
  EncoderLayers(std::shared_ptr<const EncoderWeights> weights, nn::Runner& runner, bool streams);
  virtual ~EncoderLayers() = default;

  void set_probe(LayerProbe probe) { probe_ = std::move(probe); }
  const EncoderConfig& config() const { return weights_->config; }

 protected:
  // Room for so many rows.  Memory only grows.
  void prepare(size_t rows);
  // All blocks on the first `rows` rows of x_.  The probe sees them first as "pre".  One job of the team, or, with
  // `between`, one or several for each block.
  void run(size_t rows, const BetweenJobs& between = {});
  // Work of run() on each member, block by block.
  virtual void run_layer(nn::Crew::Seat& seat, size_t index);
  // A block as jobs of a few milliseconds, `between` behind each; false, and nothing is done, where it is one job.
  virtual bool run_layer_in_jobs(size_t /*index*/, const BetweenJobs& /*between*/) { return false; }
  // Its parts before and behind attend(): from x_ to qkv_, and from attended_ and x_ to x_.
  void run_before_attention(nn::Crew::Seat& seat, size_t index);
  void run_behind_attention(nn::Crew::Seat& seat, size_t index);

  // One member's part of a block's attention: from qkv_ to attended_.
  virtual void attend(const nn::Part& part, size_t layer) = 0;
  // Where the gate of a row goes: to gated_, or where the convolution wants it.
  virtual float* gated_row(size_t row, size_t /*layer*/) { return gated_.f32(row); }
  // One member's part of the depthwise convolution: from the gates to mixed_, with what follows up to the second
  // matrix.
  virtual void convolve(const nn::Part& part, size_t layer) = 0;
  // Row of EncoderConfig::prompt that a row of frames is told.
  virtual size_t prompt_of(size_t row) const = 0;
  // Behind the depthwise convolution of layers with a norm in it: that norm, and the activation, in place.
  void finish_convolution(const EncoderLayer& layer, View<float, 2> rows) const;

  const EncoderWeights& weights() const { return *weights_; }
  View<float, 2> rows_of(nn::Plane& plane) const { return rows_of(plane, {0, rows_}); }
  static View<float, 2> rows_of(nn::Plane& plane, Range rows) {
    return {plane.f32(rows.begin), {rows.end - rows.begin, plane.channels()}, {plane.stride(), 1}};
  }
  // Lets the probe see x behind a stage.
  void show(nn::Crew::Seat& seat, size_t layer, const char* what);
  bool probed() const { return probe_ != nullptr; }

  nn::Runner& runner_;
  nn::Crew crew_;
  size_t rows_ = 0;
  nn::Plane x_, qkv_, attended_, gated_, mixed_;  // [rows, d], [rows, 3 d], [rows, d]

 private:
  void feed_forward(nn::Crew::Seat& seat, const NormWeights& norm, const kernels::OwnedMatrix& first,
                    const kernels::OwnedMatrix& second);
  void tell_prompts(nn::Crew::Seat& seat);
  void norm_rows(nn::Crew::Seat& seat, const NormWeights& norm, nn::Plane& from, nn::Plane& to);
  nn::Share linear(const nn::Part& part, const kernels::OwnedMatrix& matrix, nn::Plane& x, View<const float, 2> addend,
                   nn::Plane& y);

  std::shared_ptr<const EncoderWeights> weights_;
  const bool streams_;
  nn::Plane normed_, hidden_;  // [rows, d], [rows, F or 2 d]
  LayerProbe probe_;
};

}  // namespace syrinx::transducer
