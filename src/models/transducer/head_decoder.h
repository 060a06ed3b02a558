// Greedy decoding by a model's main head, whichever kind that is.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "models/transducer/ctc.h"
#include "models/transducer/greedy.h"

namespace syrinx::transducer {

// State of a stream; only the half that its head needs.
struct HeadState {
  explicit HeadState(const DecoderWeights& weights);
  void reset();
  // As DecoderState::forget_labels().  A CTC head's labels do not depend on those before.
  void forget_labels() {
    if (transducer) transducer->forget_labels();
  }
  void raise(uint32_t faults);  // bits of DecoderFault; nothing where there are some
  uint32_t faults() const { return transducer ? transducer->head().faults : ctc.faults; }
  int64_t decoded() const { return transducer ? transducer->head().decoded : ctc.decoded; }

  std::optional<DecoderState> transducer;
  CtcState ctc;
};

// Scratch of one team; one call at a time.  Jobs, errors and bits as in greedy.h and ctc.h; frames that are not finite
// raise the fault in every precision.
class HeadDecoder {
 public:
  HeadDecoder(std::shared_ptr<const DecoderWeights> weights, nn::Runner& runner, const GreedyOptions& options,
              size_t streams, size_t block_frames);

  struct Job {
    HeadState* state;
    View<const float, 2> frames;
    std::vector<Emission>* emissions;
  };
  void decode(std::span<const Job> jobs);
  void set_boost_scale(float scale);  // for callers in C++; the engine leaves it at 1

 private:
  std::unique_ptr<GreedyDecoder> greedy_;
  std::unique_ptr<CtcDecoder> ctc_;
  std::vector<GreedyDecoder::Job> jobs_;
};

}  // namespace syrinx::transducer
