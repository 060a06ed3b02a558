// Whisper's decoder: a causal transformer over tokens that also attends to a window's sound, one hypothesis or many at
// a step (spec whisper.md, section 2.3; OpenAI's whisper/model.py, TextDecoder).
//
// Weights are shared and constant, a DecoderState is what hypotheses remember, an AudioState what a window left
// (encoder.h), a Decoder the scratch of one task.  A step reads the weights once for all of its hypotheses, and each
// gets, to the last bit, what it gets alone.  D width, V vocabulary.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "models/whisper/encoder.h"
#include "models/whisper/model.h"
#include "nn/decoder.h"
#include "tensor/view.h"

namespace syrinx::whisper {

inline constexpr size_t kMaxHypotheses = 64;

// The caches of B hypotheses: keys and values of the tokens that each has read, in bf16 under the narrow precisions.
class DecoderState {
 public:
  // 1 to kMaxHypotheses; kLimitExceeded beyond, or for a model whose caches would be larger than 4 GiB.
  static Status check(const Model& model, size_t hypotheses);
  static Result<DecoderState> make(const Model& model, size_t hypotheses);
  // Empty again.
  void reset(size_t hypothesis) { caches_[hypothesis].reset(); }
  // `to` has read what `from` has; they are known to be equal in the first `same` tokens.
  void copy(size_t from, size_t to, size_t same = 0);
  size_t hypotheses() const { return caches_.size(); }
  size_t position(size_t hypothesis) const { return caches_[hypothesis].position; }  // of the next token
  size_t room(size_t hypothesis) const { return caches_[hypothesis].room(); }
  nn::KvCache& cache(size_t hypothesis) { return caches_[hypothesis]; }

 private:
  std::vector<nn::KvCache> caches_;
};

// A token of a hypothesis, and the sound that it is about.
struct DecoderInput {
  size_t hypothesis = 0;
  int32_t token = 0;
  const AudioState* audio = nullptr;
};

// One thread at a time; the team is borrowed.  All memory is planned when it is made.
class Decoder {
 public:
  // Steps of up to `max_hypotheses`, 1 to kMaxHypotheses.
  Decoder(std::shared_ptr<const Model> model, ThreadTeam& team, size_t max_hypotheses);

  // Called from now on between jobs of prefill() and align(), of so many multiplications each or 8 rows; 0: of a few
  // milliseconds.  Empty: nothing is called or cut.  The results are the same bits.
  void set_between(BetweenJobs between, size_t job_products = 0) {
    between_ = std::move(between);
    job_products_ = job_products;
  }

  // One token of each of some different hypotheses: the logits [n, V] of what follows, row i those of inputs[i].  Valid
  // until the next call.  Tokens must be of the vocabulary, hypotheses have room, windows be encoded by this model.
  // Those of one window should stand beside each other.  Allocates nothing.
  View<const float, 2> step(std::span<const DecoderInput> inputs, DecoderState& state);

  // Some tokens of one hypothesis at once, a prompt: the logits [V] behind the last.  At least one, and at most its
  // room.
  std::span<const float> prefill(size_t hypothesis, std::span<const int32_t> tokens, const AudioState& audio,
                                 DecoderState& state);

  // The same, and keeps how `heads` look at the sound: weights [heads, tokens, positions], the probabilities of their
  // cross-attention, and log_probabilities [tokens - 1], of each token but the first behind those before it, where the
  // ids below `text_tokens` are all that there is (for other ids the value means nothing).
  void align(size_t hypothesis, std::span<const int32_t> tokens, const AudioState& audio,
             std::span<const AlignmentHead> heads, size_t text_tokens, DecoderState& state, std::vector<float>& weights,
             std::vector<float>& log_probabilities);

  const Model& model() const { return *model_; }

 private:
  // The weights that align() keeps.
  struct Kept {
    std::span<const AlignmentHead> heads;
    float* weights = nullptr;  // of the pass's first row
    size_t head_stride = 0;
  };

  void embed(size_t row, int32_t token, size_t position);
  void run(std::span<const nn::Decoder::Rows> streams);
  size_t parts_of_pass(size_t rows, size_t positions) const;
  template <class Then>
  void prefill_passes(size_t hypothesis, std::span<const int32_t> tokens, const AudioState& audio, DecoderState& state,
                      const Then& then);
  void prefill_pass(size_t hypothesis, std::span<const int32_t> tokens, const AudioState& audio, DecoderState& state);
  void give_way() const {
    if (between_) between_();
  }
  void keep_weights(const nn::Decoder::CrossSeen& seen);
  View<const float, 2> logits(size_t first, size_t count);

  std::shared_ptr<const Model> model_;
  nn::Runner runner_;
  nn::Crew crew_;
  nn::Decoder decoder_;
  size_t max_step_rows_;
  size_t rows_ = 0;  // of the pass
  std::vector<nn::Decoder::Rows> streams_;
  BetweenJobs between_;
  size_t job_products_ = 0;
  Kept kept_;
  nn::Plane normed_, logits_;  // rows of logits(): [n, D], [n, V]
};

}  // namespace syrinx::whisper
