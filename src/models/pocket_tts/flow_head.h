// The head that turns noise into the next latent: a small network of modulated blocks, evaluated once or several times
// a frame (spec pocket-tts.md, section 3.3; the maker's pocket_tts/modules/mlp.py and models/flow_lm.py).
//
//   lsd            x = noise, x += v(x; s = i / N, t = (i + 1) / N) / N for i = 0 ... N - 1
//   flow_matching  the same with t = i / N alone
//   drifting       x = v(noise)           one evaluation, no times
//   pointwise      x = noise + v(noise)   the same
//
// Weights are shared and constant; a FlowHead has scratch of its own and runs one frame at a time on a team of threads.
// W head width, X latent, Z what the language model hands over, E evaluations.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "models/pocket_tts/flow_lm_weights.h"
#include "nn/runner.h"

namespace syrinx::pocket {

inline constexpr size_t kMaxEvaluations = 64;
// Fewer make no speech, and the maker's package refuses them.
inline constexpr size_t kMinFlowMatchingEvaluations = 16;

// What the times of a frame's evaluations add to the condition: the same for every frame, so computed once.
struct FlowSchedule {
  size_t evaluations = 1;
  std::vector<float> time;  // [E, W], the mean of the embeddings; empty for heads without times
};

// `decode_steps` is N; heads without times ignore it.  kInvalidArgument for a number that the head cannot do.
Result<FlowSchedule> make_schedule(const FlowLmWeights& weights, size_t decode_steps);

// One embedding of a time from 0 to 1, [W].
std::vector<float> time_embedding(const TimeEmbedding& weights, float time);

class FlowHead {
 public:
  // The runner is borrowed and must outlive this; its scratch grows here to what a frame needs.
  FlowHead(std::shared_ptr<const FlowLmWeights> weights, FlowSchedule schedule, nn::Runner& runner);

  // hidden [1, Z] is FlowLm::Step::hidden; noise [X] -> latent [X], which may be the same memory.  Allocates nothing.
  void sample(View<const float, 2> hidden, std::span<const float> noise, std::span<float> latent);

  size_t evaluations() const { return schedule_.evaluations; }

  // Called with what each part gives: "condition" once, "input", "block" (with its index) and "velocity" at every
  // evaluation.
  using Probe = std::function<void(std::string_view stage, size_t index, std::span<const float> values)>;
  void set_probe(Probe probe) { probe_ = std::move(probe); }

 private:
  void modulate(View<const float, 2> hidden);
  void run_network(size_t evaluation);
  void probe(std::string_view stage, size_t index, const nn::Plane& row) const;

  std::shared_ptr<const FlowLmWeights> weights_;
  FlowSchedule schedule_;
  nn::Runner& runner_;
  Probe probe_;
  nn::Plane condition_;           // [1, W]
  nn::Plane times_, modulation_;  // [E, W], [E, 3 W * blocks + 2 W]
  nn::Plane x_, velocity_;        // [1, X]
  nn::Plane h_, inner_, hidden_;  // [1, W]
};

}  // namespace syrinx::pocket
