// The codec's transformer: pre-norm layers with rotary positions and a window, some positions at a time (spec
// pocket-tts.md, section 4.1, step 3).  All layers run inside one job of the team.
#pragma once

#include <string_view>
#include <vector>

#include "models/mimi/seanet.h"
#include "models/mimi/weights.h"
#include "nn/runner.h"
#include "tensor/buffer.h"
#include "tensor/view.h"

namespace syrinx::mimi {

// Position p lies in row p mod R of each ring, R = window - 1 + step.  The rings need no clearing: no row is read that
// was not written since position 0.
struct TransformerState {
  std::vector<Buffer<float>> keys, values;  // of each layer, [R, key width]
  size_t position = 0;                      // of the next row
};

// Scratch and the order of work; the weights must outlive it.  One step at a time.
class Transformer {
 public:
  // `step`: most rows of a run().
  Transformer(const TransformerWeights& weights, size_t step, nn::Runner& runner);

  TransformerState make_state() const;
  // Inside a job that every member runs: x [T, width] in place, T <= step, rows of whole padded channels.  x must be
  // whole before, and is when it returns.  Allocates nothing.
  void run(int member, TransformerState& state, View<float, 2> x, std::string_view stage, const Probe& probe);

 private:
  size_t ring_rows() const { return w_.config.window - 1 + normed_.rows(); }
  void attention_block(int member, const TransformerLayer& layer, View<float, 2> keys, View<float, 2> values,
                       size_t first, View<float, 2> x);
  void feed_forward_block(int member, const TransformerLayer& layer, View<float, 2> x);

  const TransformerWeights& w_;
  nn::Runner& runner_;
  nn::Plane normed_, qkv_, attended_, hidden_, cosine_, sine_;
  std::vector<Buffer<float>> scratch_;  // of attention, for each member of the team
};

}  // namespace syrinx::mimi
