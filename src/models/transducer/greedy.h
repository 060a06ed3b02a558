// Greedy decoding of a transducer by label looping, for a batch of streams (spec transducer-asr.md, sections 4.2
// to 4.4; the maker's parts/submodules/transducer_decoding/rnnt_label_looping.py and tdt_label_looping.py).
//
//   inner loop   the joint alone, for the streams that still seek a label, each at its own frame
//   outer loop   one step of the prediction network for the streams that have found one
//
//   RNN-T   blank: the next frame.  Label: found, same frame again.
//   TDT     blank: max(duration, 1) frames on.  Label: found, `duration` frames on, maybe none.
//   After max_symbols labels at one frame the next one follows.
//
// Frames come in any chunks: what is found does not depend on where they end, nor on the other streams of the batch.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/transducer/confidence.h"
#include "models/transducer/joint.h"
#include "models/transducer/prediction.h"

namespace syrinx::transducer {

// A label that was found.
struct Emission {
  int64_t frame = 0;  // of the stream, at which it was found
  int32_t label = 0;
  uint32_t duration = 1;  // frames; RNN-T knows none and says 1
  float logit = 0;        // its own, before anything that favours words
  float confidence = 0;   // 0 to 1; 0 where none was asked for
};

// The engine asks for a confidence alone; penalty and scale are for callers of this library in C++.
struct GreedyOptions {
  float blank_penalty = 0.0f;  // taken from the blank's logit
  float boost_scale = 1.0f;    // times the bonuses of a stream's BoostTree
  ConfidenceConfig confidence = {};
};

// Scratch of one team; one call at a time.  Made for one kind of head, without a branch on kinds in its steps.
class GreedyDecoder {
 public:
  struct Job {
    DecoderState* state;
    View<const float, 2> frames;       // [T, d] of the encoder, rows padded with zeros to a multiple of 32
    std::vector<Emission>* emissions;  // what is found is appended; room reserved by the caller is all that is used
  };
  // The runner is borrowed and must outlive this.  A call takes up to `streams` jobs and reads up to `block_frames`
  // frames of each at once; longer ones go through in several rounds.
  static std::unique_ptr<GreedyDecoder> make(std::shared_ptr<const DecoderWeights> weights, nn::Runner& runner,
                                             const GreedyOptions& options, size_t streams, size_t block_frames);
  virtual ~GreedyDecoder() = default;

  // All frames of different streams.  Allocates nothing but what `emissions` lacks.
  void decode(std::span<const Job> jobs);
  void set_boost_scale(float scale) { options_.boost_scale = scale; }

 protected:
  GreedyDecoder(std::shared_ptr<const DecoderWeights> weights, nn::Runner& runner, const GreedyOptions& options,
                size_t streams, size_t block_frames);
  // A stream within a round.
  struct Lane {
    DecoderState* state;
    View<const float, 2> frames;  // of the round, [n, d]
    size_t first_row;             // of joint.enc's output
    int64_t begin, end;           // which frames of the stream they are
    std::vector<Emission>* emissions;
  };
  // Looks at a lane's logits [V + 1 + N]; true when it has found a label, which then is in head().label.
  virtual bool decide(Lane& lane, std::span<float> logits) = 0;
  // The label that the logits [V + 1] speak for; raises a fault and gives blank where they are not finite.
  int32_t choose(DecoderState::Head& head, std::span<float> logits) const;
  // Applies a decision to the stream: blank advances by `ahead` frames, or one; a label is emitted with `duration`, and
  // the stream also advances once a frame has its maximum of labels.  True for a label.
  bool take(Lane& lane, int32_t label, size_t ahead, uint32_t duration, std::span<const float> logits);

  std::shared_ptr<const DecoderWeights> weights_;
  GreedyOptions options_;

 private:
  void emit(Lane& lane, int32_t label, uint32_t duration, std::span<const float> logits);
  void run_round();
  void begin_step();
  void seek(Lane* lane);
  void decide_all();

  nn::Runner& runner_;
  nn::Crew crew_;
  Prediction prediction_;
  Joint joint_;
  size_t streams_, block_frames_;
  std::vector<Lane> lanes_;
  std::vector<Lane*> seeking_, deciding_, found_;
  std::vector<DecoderState*> stepping_;
  std::vector<float> scratch_;  // of a confidence
};

}  // namespace syrinx::transducer
