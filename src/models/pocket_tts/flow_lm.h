// The language model of Pocket TTS: a causal transformer that reads a voice, a text and the latents spoken so far, and
// says for each position what the flow head needs to draw the next latent, and whether speech ends (spec pocket-tts.md,
// section 3; the maker's pocket_tts/models/flow_lm.py and modules/transformer.py).  One position is one frame of 80 ms.
//
//   [bos_before_voice]?  voice frames  text tokens  BOS latent  latent 0  latent 1 ...
//
// Weights are shared and constant, a FlowLmState is what one stream remembers, a FlowLm runs passes of any number of
// states on a team of threads with scratch of its own: one pass at a time.  D, A, K, F, X, V, Z as in
// flow_lm_weights.h.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "models/pocket_tts/flow_lm_weights.h"
#include "nn/runner.h"

namespace syrinx::pocket {

// Positions that a state may have at most: 11 minutes of speech; the angles of rotary() are accurate that far.
inline constexpr size_t kMaxPositions = 8192;
// The published models need 1.6 GB for so many at most; a hostile file could ask for hundreds.
inline constexpr size_t kMaxStateBytes = size_t{4} << 30;

// Keys (rotated) and values of every position so far: what a voice is, and what a stream remembers.
struct FlowLmState {
  size_t layers = 0, capacity = 0, key_width = 0;
  Buffer<float> keys, values;  // [layers, capacity, K]
  size_t position = 0;         // of the next row; rows behind it hold nothing
  bool full = false;           // a step was refused because position had reached capacity

  // kLimitExceeded beyond kMaxPositions.
  static Result<FlowLmState> make(const FlowLmWeights& weights, size_t capacity);
  void reset();
  // Becomes a deep copy of a voice's positions, with this state's capacity.  kInvalidArgument: another model's voice.
  // kLimitExceeded: it does not fit.
  Status copy_from(const FlowLmState& voice);

  View<float, 2> layer_keys(size_t layer) {
    return {keys.data() + layer * capacity * key_width, {capacity, key_width}};
  }
  View<float, 2> layer_values(size_t layer) {
    return {values.data() + layer * capacity * key_width, {capacity, key_width}};
  }
};

class FlowLm {
 public:
  // The runner is borrowed and must outlive this; its scratch grows here to what a step needs.
  FlowLm(std::shared_ptr<const FlowLmWeights> weights, nn::Runner& runner);

  // Each reads rows into the next positions of a state, many in one pass, and gives kLimitExceeded before anything is
  // read if they do not fit.
  // A voice's latents [n, V]: projected, with the vector before the voice in front where the model has one.
  Status prefill_voice(View<const float, 2> latents, FlowLmState& state);
  // A voice that is projected already [n, D], with that vector in front as well.
  Status prefill_projected(View<const float, 2> rows, FlowLmState& state);
  // Tokens; kInvalidArgument for one that the table does not have.
  Status prefill_text(std::span<const int32_t> ids, FlowLmState& state);

  struct Step {
    View<const float, 2> hidden;  // [1, Z], what the head reads; valid until the next call
    float eos_logit = 0.0f;
  };
  // One position: the latent before it [X], or nullptr for the first.  A state without room is marked `full` and
  // nothing else happens: hidden and the logit are then those of the step before.  Allocates nothing.
  Step step(const float* latent, FlowLmState& state);

  const FlowLmWeights& weights() const { return *weights_; }

  // Called with each layer's output rows [n, D] ("layer"), and with what goes into the first ("voice", "text"); a pass
  // may call it several times a layer.  With a probe the prefill computes the last layer's output, which nothing needs.
  using Probe = std::function<void(std::string_view stage, size_t layer, View<const float, 2> rows)>;
  void set_probe(Probe probe) { probe_ = std::move(probe); }

 private:
  Status check_room(const FlowLmState& state, size_t rows) const;
  void append_bos(FlowLmState& state);
  void append_rows(std::string_view stage, size_t rows, FlowLmState& state);
  void run_layers(size_t rows, bool need_output, FlowLmState& state);
  void run_attention(const FlowLmLayer& layer, size_t index, size_t rows, bool need_output, FlowLmState& state);
  void run_feed_forward(const FlowLmLayer& layer, size_t rows);

  std::shared_ptr<const FlowLmWeights> weights_;
  nn::Runner& runner_;
  Probe probe_;
  nn::Plane voice_, text_, latent_;                 // rows before their projection: [n, V], [n, rank], [1, X]
  nn::Plane x_, normed_, qkv_, attended_, hidden_;  // [n, D], [n, D], [n, A + 2 K], [n, A], [n, F]
  nn::Plane cosines_, sines_;                       // [n, head size / 2]
  nn::Plane condition_, logit_;                     // [1, Z], [1, 1]
};

}  // namespace syrinx::pocket
