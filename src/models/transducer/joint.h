// The joint: logits of every label, and of TDT's durations, for a frame and a history (spec transducer-asr.md, section
// 4.1).  What a frame gives is computed once for many of them, what a history gives by the prediction network.
//   z = W_out relu(a + b) + b_out,   a = W_enc enc_t + b_enc,   b = W_pred g_u + b_pred
#pragma once

#include <memory>
#include <span>

#include "models/transducer/decoder_weights.h"
#include "nn/runner.h"

namespace syrinx::transducer {

// Scratch of one team.  A row depends on nothing but its own frame and history, to the last bit.
class Joint {
 public:
  // Room for `frames` frames and `rows` pairs at once.  The runner is borrowed; its scratch grows here.
  Joint(std::shared_ptr<const DecoderWeights> weights, nn::Runner& runner, size_t frames, size_t rows);

  // a of frames [n, d], into rows [first, first + n) of encoded().  One member's part: all of it is there after a
  // barrier.
  void encode(const nn::Part& part, View<const float, 2> frames, size_t first);
  std::span<const float> encoded(size_t row) const { return {encoded_.f32(row), encoded_.channels()}; }
  // Pair `row` becomes this frame's a and this history's b, both [J].
  void pair(size_t row, std::span<const float> a, std::span<const float> b);
  // Logits of the first `rows` pairs, one member's part.
  void multiply(const nn::Part& part, size_t rows);
  std::span<float> logits(size_t row) { return {logits_.f32(row), logits_.channels()}; }  // [V + 1 + N]

 private:
  std::shared_ptr<const DecoderWeights> weights_;
  nn::Runner& runner_;
  nn::Plane encoded_, sum_, logits_;  // [frames, J], [rows, J], [rows, V + 1 + N]
};

}  // namespace syrinx::transducer
