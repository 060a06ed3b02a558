// The language model of Pocket TTS: a causal transformer that reads a voice, a text and the latents spoken so far, and
// says for each position what the flow head needs to draw the next latent, and whether speech ends (spec pocket-tts.md,
// section 3; the maker's pocket_tts/models/flow_lm.py and modules/transformer.py).  One position is one frame of 80 ms.
//
//   [bos_before_voice]?  voice frames  text tokens  BOS latent  latent 0  latent 1 ...
//
// Weights are shared and constant, a FlowLmState is what one stream remembers (a voice's positions are shared by all
// that speak with it), a FlowLm runs passes on a team of threads with scratch of its own: one pass at a time.  A step
// serves several streams at once, so that the weights are read once for all of them; each gets, to the last bit, what
// it gets alone.  D, X, V, Z as in flow_lm_weights.h.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "models/pocket_tts/flow_lm_state.h"
#include "models/pocket_tts/flow_lm_weights.h"
#include "nn/decoder.h"
#include "nn/runner.h"

namespace syrinx::pocket {

inline constexpr size_t kMaxStreams = 64;

class FlowLm {
 public:
  // The runner is borrowed and must outlive this; its scratch grows here to what a pass needs.  A step takes up to
  // `streams` states, 1 to kMaxStreams.
  FlowLm(std::shared_ptr<const FlowLmWeights> weights, nn::Runner& runner, size_t streams = 1);
  // Each reads rows into the next positions of a state, many in one pass, and gives kLimitExceeded before anything is
  // read if they do not fit.  With `between`, a pass is of kRowsOfJob rows at most, and it is called between two of
  // them: this object and its team may serve other states meanwhile.  The state is the same to the last bit.
  static constexpr size_t kRowsOfJob = 28;
  // A voice's latents [n, V]: projected, in an empty state with the vector before the voice in front where the model
  // has one.  So a voice may come in parts.
  Status prefill_voice(View<const float, 2> latents, FlowLmState& state, const nn::BetweenJobs& between = {});
  // A voice that is projected already [n, D], that vector in front in the same way.
  Status prefill_projected(View<const float, 2> rows, FlowLmState& state, const nn::BetweenJobs& between = {});
  // Tokens; kInvalidArgument for one that the table does not have.
  Status prefill_text(std::span<const int32_t> ids, FlowLmState& state, const nn::BetweenJobs& between = {});

  struct Stream {
    const float* latent;  // [X], the one before; nullptr for the first
    FlowLmState* state;
  };
  struct Steps {
    View<const float, 2> hidden;  // [B, Z], what the head reads; valid until the next call
    const float* eos_logits;      // [B], at the stride of logit()
    size_t stride;
    float logit(size_t stream) const { return eos_logits[stream * stride]; }
  };
  // One position of each of B different states.  A state without room is marked `full`, and its row means nothing.
  // Allocates nothing.
  Steps step(std::span<const Stream> streams);
  // The same in three parts, for a job that also does other work: the middle one is called by every member that works
  // at it, with a seat of crew(), between the other two.
  nn::Crew& crew() { return crew_; }
  void begin_step(std::span<const Stream> streams);
  void work_at_step(nn::Crew::Seat& seat);
  Steps end_step();

  const FlowLmWeights& weights() const { return *weights_; }

  // Called with each layer's output rows [n, D] ("layer"), and with what goes into the first ("voice", "text"); a pass
  // may call it several times a layer.  With a probe the prefill computes the last layer's output, which nothing needs.
  using Probe = std::function<void(std::string_view stage, size_t layer, View<const float, 2> rows)>;
  void set_probe(Probe probe);

 private:
  Status check_room(const FlowLmState& state, size_t rows) const;
  bool needs_bos(const FlowLmState& state) const;
  void append_bos(FlowLmState& state);
  Status prefill_rows(View<const float, 2> rows, bool projected, FlowLmState& state, const nn::BetweenJobs& between);
  void append_rows(std::string_view stage, size_t rows, FlowLmState& state);

  std::shared_ptr<const FlowLmWeights> weights_;
  nn::Runner& runner_;
  nn::Crew crew_;
  nn::Decoder decoder_;
  nn::RowNorm out_norm_;
  Probe probe_;
  size_t rows_ = 0;  // of the step
  std::vector<nn::Decoder::Rows> streams_;
  nn::Plane voice_, text_, latent_;  // rows before their projection: [n, V], [n, rank], [B, X]
  nn::Plane condition_, logit_;      // [B, Z], [B, 1]
};

}  // namespace syrinx::pocket
