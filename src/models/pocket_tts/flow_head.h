// The head that turns noise into the next latent: a small network of modulated blocks, evaluated once or several times
// a frame (spec pocket-tts.md, section 3.3; the maker's pocket_tts/modules/mlp.py and models/flow_lm.py).
//
//   lsd            x = noise, x += v(x; s = i / N, t = (i + 1) / N) / N for i = 0 ... N - 1
//   flow_matching  the same with t = i / N alone
//   drifting       x = v(noise)           one evaluation, no times
//   pointwise      x = noise + v(noise)   the same
//
// Weights are shared and constant; a FlowHead has scratch of its own and runs one frame of some streams at a time on a
// team of threads; each stream gets, to the last bit, what it gets alone.
// W head width, X latent, Z what the language model hands over, E evaluations, B streams.
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

// Terms that the times of a frame's evaluations add to the condition: the same for every frame, so computed once.
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
  // The runner is borrowed and must outlive this; its scratch grows here to what a frame needs.  A call takes up to
  // `streams` rows, 1 to kMaxStreams (flow_lm.h).
  FlowHead(std::shared_ptr<const FlowLmWeights> weights, FlowSchedule schedule, nn::Runner& runner, size_t streams = 1);
  struct Stream {
    std::span<const float> hidden;  // [Z], a row of FlowLm::Steps
    std::span<const float> noise;   // [X]
    std::span<float> latent;        // [X], what the noise becomes; may be the same memory
  };
  // Allocates nothing.
  void sample(std::span<const Stream> streams);

  size_t evaluations() const { return schedule_.evaluations; }
  size_t streams() const { return x_.rows(); }  // that a call may have

  // Called with what each part gives for the first stream: "condition" once, "input", "block" (with its index) and
  // "velocity" at every evaluation.
  using Probe = std::function<void(std::string_view stage, size_t index, std::span<const float> values)>;
  void set_probe(Probe probe) { probe_ = std::move(probe); }

 private:
  void modulate(nn::Crew::Seat& seat, size_t rows);
  void run_network(nn::Crew::Seat& seat, size_t rows, size_t evaluation);
  nn::Share linear(const nn::Part& part, const kernels::OwnedMatrix& matrix, View<const float, 2> x, View<float, 2> y);
  void probe(nn::Crew::Seat& seat, std::string_view stage, size_t index, const nn::Plane& plane) const;

  std::shared_ptr<const FlowLmWeights> weights_;
  FlowSchedule schedule_;
  nn::Runner& runner_;
  nn::Crew crew_;
  Probe probe_;
  nn::Plane read_, condition_;    // [B, Z], [B, W]
  nn::Plane times_, modulation_;  // [B E, W], [B E, 3 W * blocks + 2 W]: a stream's evaluations follow each other
  nn::Plane x_, velocity_;        // [B, X]
  nn::Plane h_, inner_, hidden_;  // [B, W]
};

}  // namespace syrinx::pocket
