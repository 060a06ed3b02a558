// Everything that sees all tokens at once: PLBERT, durations, text encoder (specification 3, steps 1 to 3 and 6).
#pragma once

#include <span>
#include <vector>

#include "models/kokoro/layers.h"
#include "models/kokoro/weights.h"
#include "nn/runner.h"

namespace syrinx::kokoro {

class TextSide {
 public:
  TextSide(const Weights& weights, nn::Runner& runner) : w_(weights), runner_(runner) {}

  // tokens [n] with both zeros; style: the prosody half.  Fills the planes below.
  void run(std::span<const int32_t> tokens, std::span<const float> style, StyleNorm& norm);

  // Gives the scratch back; the next run() takes it again.
  void release();

  const nn::Plane& bert() const { return x_; }       // [n, 768]
  const nn::Plane& encoded() const { return d_; }    // [n, hidden + style], the duration encoder's output
  std::span<float> raw_durations() { return raw_; }  // [n], frames at speed 1, before rounding
  const nn::Plane& text() const { return text_; }    // [n, hidden]

 private:
  void embed(std::span<const int32_t> tokens);
  void bert_layer();
  void durations(std::span<const float> style, StyleNorm& norm);
  void text_encoder(std::span<const int32_t> tokens);

  const Weights& w_;
  nn::Runner& runner_;
  nn::Plane embedded_, x_, qkv_, attended_, projected_, ffn_, d_, gates_, lstm_out_, duration_, text_, conv_;
  nn::PlaneStats stats_;
  std::vector<float> raw_;
};

}  // namespace syrinx::kokoro
