// Everything at 40 and 80 Hz: F0 and energy (specification 3, step 5), and the decoder front (section 4).
#pragma once

#include <span>

#include "models/kokoro/layers.h"
#include "models/kokoro/weights.h"
#include "nn/runner.h"

namespace syrinx::kokoro {

class FrameSide {
 public:
  FrameSide(const Weights& weights, nn::Runner& runner) : w_(weights), runner_(runner), blocks_(runner) {}

  // encoded [n, hidden + style] and text [n, hidden] of the text side; token_of_frame [F] expands them to frames.
  void prosody(const nn::Plane& encoded, std::span<const int32_t> token_of_frame, StyleNorm& prosody_style);
  void decode(const nn::Plane& text, std::span<const int32_t> token_of_frame, StyleNorm& decoder_style);

  // Gives everything but f0 and the output back; the next piece takes it again.
  void release();

  size_t frames() const { return asr_.rows(); }
  // [2F] each, column 0 of a plane; F0 in Hz.
  const nn::Plane& f0() const { return f0_; }
  const nn::Plane& energy() const { return energy_; }
  const nn::Plane& asr() const { return asr_; }        // [F, hidden]
  const nn::Plane& output() const { return output_; }  // [2F, 512]

 private:
  void branch(const std::array<ResBlock, 3>& blocks, const PackedMatrix& projection, StyleNorm& style, nn::Plane& out);
  void write_tail(nn::Plane& plane, size_t column);

  const Weights& w_;
  nn::Runner& runner_;
  ResBlockRunner blocks_;
  nn::Plane gates_, shared_, branch_a_, branch_b_, f0_, energy_, asr_, asr_res_, contours_, in_, next_, output_;
};

}  // namespace syrinx::kokoro
