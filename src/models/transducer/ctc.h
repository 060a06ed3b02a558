// Greedy decoding by a CTC head: the likeliest label of each frame, repetitions taken together, blanks dropped (spec
// transducer-asr.md, section 4.6; Graves et al. 2006).  Of hybrids it is the second opinion, of CTC models the only
// one.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/transducer/greedy.h"

namespace syrinx::transducer {

// State of a stream.
struct CtcState {
  int64_t decoded = 0;  // frames that have come
  int32_t last = -1;    // the label of the frame before; -1: blank, or none yet
  uint32_t faults = 0;  // bits of DecoderFault
};

// Scratch of one team; one call at a time.  What is found depends neither on chunks nor on other streams.
class CtcDecoder {
 public:
  // The runner is borrowed and must outlive this.  `block_frames` frames go through at once.
  CtcDecoder(std::shared_ptr<const DecoderWeights> weights, nn::Runner& runner, const ConfidenceConfig& confidence,
             size_t block_frames);

  // Frames [T, d] of the encoder, rows padded with zeros to a multiple of 32.  Appends what is found: a label's
  // duration is how many frames say it, its confidence the least of theirs.  One that goes on from the call before
  // grows if it still is the last of `emissions`.  Allocates nothing but what `emissions` lacks.
  void decode(View<const float, 2> frames, CtcState& state, std::vector<Emission>& emissions);

 private:
  void read(size_t row, CtcState& state, std::vector<Emission>& emissions);

  std::shared_ptr<const DecoderWeights> weights_;
  nn::Runner& runner_;
  nn::Crew crew_;
  ConfidenceConfig confidence_;
  nn::Plane logits_;  // [block, V + 1]
  std::vector<float> scratch_;
};

}  // namespace syrinx::transducer
