// Beam search of a transducer by modified adaptive expansion (spec transducer-asr.md, section 4.6; Kim, Lee, Arora
// 2020; the maker's parts/submodules/rnnt_beam_decoding.py and tdt_beam_decoding.py, search type "maes").
//
// At each frame the hypotheses that stand there are extended by the labels that lie within `gamma` of their best one,
// up to `steps` times, before all go on by a blank; under TDT a label brings its duration along, so hypotheses wait for
// the frame that they have reached.  A hypothesis also gets what its own beginning, one label shorter, would add to it.
//
// For whole recordings: unlike the greedy decoder's its calls allocate, and they take several times as long.
#pragma once

#include <memory>
#include <vector>

#include "models/transducer/encoder_layers.h"
#include "models/transducer/greedy.h"

namespace syrinx::transducer {

inline constexpr size_t kMaxBeam = 16;

struct BeamOptions {
  size_t beam = 4;           // hypotheses kept, 2 to kMaxBeam
  size_t steps = 2;          // labels at one frame, 1 to 4; RNN-T 2 at least
  float gamma = 2.3f;        // in log probability, >= 0
  size_t beta = 2;           // candidates beyond `beam`, at most kMaxBeam; both together at most V
  float temperature = 1.0f;  // > 0
  bool normalise = true;     // the best is that of the greatest score a label
};

struct Hypothesis {
  // Without logits.  The confidence of a label is its probability where it was chosen, under TDT with its duration's.
  std::vector<Emission> emissions;
  double score = 0;  // log probability of all its paths that were looked at
};

class BeamDecoder {
 public:
  // kInvalidArgument for options beyond the limits above.  The runner is borrowed and must outlive this.
  static Result<std::unique_ptr<BeamDecoder>> make(std::shared_ptr<const DecoderWeights> weights, nn::Runner& runner,
                                                   const BeamOptions& options);
  // All hypotheses kept for these frames [T, d] of a recording, finite, the best first.  `between` is called behind
  // each frame; this object is not to be used meanwhile.
  std::vector<Hypothesis> decode(View<const float, 2> frames, const BetweenJobs& between = {});
  // Bits of DecoderFault that the last call raised for any hypothesis; what it found then means nothing.
  uint32_t faults() const { return faults_; }

 private:
  // State behind a history of labels; several hypotheses may share one.
  struct Path {
    std::vector<Emission> emissions;
    double score = 0;
    int64_t frame = 0;                          // TDT: at which it goes on
    std::shared_ptr<const DecoderState> state;  // after the last of its labels
  };
  using Paths = std::vector<Path>;
  // Log probabilities of labels and of durations, a row for each path.
  struct Scores {
    std::vector<float> values;
    size_t width = 0;
    std::span<const float> row(size_t path) const { return {&values[path * width], width}; }
  };
  struct Choice {
    int32_t label;
    size_t duration;  // its index; 0 for RNN-T
    double log_probability;
  };

  BeamDecoder(std::shared_ptr<const DecoderWeights> weights, nn::Runner& runner, const BeamOptions& options);
  Paths start();
  void encode(View<const float, 2> frames);
  Scores evaluate(const Paths& paths, size_t row);
  void follow(Paths& paths);
  void add_prefixes(Paths& paths, size_t row);
  std::vector<Choice> choices(std::span<const float> scores) const;
  Paths advance(Paths paths, size_t row, int64_t frame);
  Paths advance_rnnt(Paths paths, size_t row, int64_t frame);
  Paths advance_tdt(Paths waiting, Paths paths, size_t row, int64_t frame);
  Path extended(const Path& path, const Choice& choice, int64_t frame) const;
  void end_by_blank(Paths& paths, size_t row);
  void keep_best(Paths& paths) const;
  static Paths merged(Paths paths);
  size_t labels() const { return weights_->config.vocabulary + 1; }
  bool has_durations() const { return !weights_->config.durations.empty(); }

  std::shared_ptr<const DecoderWeights> weights_;
  BeamOptions options_;
  nn::Runner& runner_;
  Prediction prediction_;
  Joint joint_;
  uint32_t faults_ = 0;
  size_t step_duration_ = 0;  // index of the least duration that is not 0
  size_t zero_duration_ = 0;  // index of duration 0, or their number
};

}  // namespace syrinx::transducer
