// The prediction network: one label a step for a batch of streams, and what it hands to the joint (spec
// transducer-asr.md, section 4.1).  B streams, P LSTM width, J joint width.
#pragma once

#include <memory>
#include <span>

#include "models/transducer/decoder_state.h"
#include "models/transducer/decoder_weights.h"
#include "nn/runner.h"

namespace syrinx::transducer {

// Scratch of one team; one step at a time.  Each stream gets, to the last bit, what it gets alone.
class Prediction {
 public:
  // The runner is borrowed and must outlive this; its scratch grows here to what `streams` rows need.
  Prediction(std::shared_ptr<const DecoderWeights> weights, nn::Runner& runner, size_t streams);

  // Reads head().label of each state (-1: the start of a stream) and moves hidden, cell and projection on by it.
  // Allocates nothing.  Inside a job of the team: begin() by one member, then, behind a barrier, work() by all.
  void begin(std::span<DecoderState* const> states);
  void work(nn::Crew::Seat& seat);
  // All of it, as a job of its own.
  void step(std::span<DecoderState* const> states);

 private:
  void gates(const nn::Part& part, size_t layer);
  void cells(const nn::Part& part, size_t layer);

  std::shared_ptr<const DecoderWeights> weights_;
  nn::Runner& runner_;
  nn::Crew crew_;
  std::vector<DecoderState*> states_;
  nn::Plane input_, gates_, projected_;  // [B, P], [B, 4P], [B, J]
  std::vector<nn::Plane> hidden_;        // a layer: [B, P]
};

}  // namespace syrinx::transducer
