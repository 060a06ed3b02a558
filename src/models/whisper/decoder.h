// Whisper's decoder: a causal transformer over tokens that also attends to a window's sound, one hypothesis or many at
// a step (spec whisper.md, section 2.3; OpenAI's whisper/model.py, TextDecoder).
//
// Weights are shared and constant, a DecoderState is what hypotheses remember, an AudioState what a window left
// (encoder.h), a Decoder the scratch of one task.  A step reads the weights once for all of its hypotheses, and each
// gets, to the last bit, what it gets alone.  D width, V vocabulary.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/whisper/encoder.h"
#include "models/whisper/model.h"
#include "nn/runner.h"
#include "tensor/buffer.h"
#include "tensor/view.h"

namespace syrinx::whisper {

inline constexpr size_t kMaxHypotheses = 64;

// Keys and values of the tokens that each of B hypotheses has read, in bf16 under the narrow precisions.
struct DecoderState {
  DType type = DType::kF32;  // or kBF16
  size_t layers = 0, heads = 0, head_size = 0, capacity = 0;
  Buffer<std::byte> keys, values;  // [layers, B, heads, capacity, head size]
  std::vector<size_t> read;        // [B], tokens so far

  // 1 to kMaxHypotheses; kLimitExceeded beyond, or for a model whose caches would be larger than 4 GiB.
  static Result<DecoderState> make(const Model& model, size_t hypotheses);
  // Empty again.
  void reset(size_t hypothesis) { read[hypothesis] = 0; }
  // `to` has read what `from` has.
  void copy(size_t from, size_t to);
  size_t hypotheses() const { return read.size(); }
  size_t position(size_t hypothesis) const { return read[hypothesis]; }  // of the next token
  size_t room(size_t hypothesis) const { return capacity - read[hypothesis]; }

  // [capacity, head size]; T is float, or uint16_t for bf16, as `type` says.
  template <class T>
  View<T, 2> head_keys(size_t layer, size_t hypothesis, size_t head) {
    return {reinterpret_cast<T*>(keys.data()) + offset(layer, hypothesis, head), {capacity, head_size}};
  }
  template <class T>
  View<T, 2> head_values(size_t layer, size_t hypothesis, size_t head) {
    return {reinterpret_cast<T*>(values.data()) + offset(layer, hypothesis, head), {capacity, head_size}};
  }

 private:
  size_t offset(size_t layer, size_t hypothesis, size_t head) const {
    return ((layer * read.size() + hypothesis) * heads + head) * capacity * head_size;
  }
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
  // Rows of a pass that belong to one hypothesis.
  struct Segment {
    size_t hypothesis = 0, first = 0, rows = 0;
  };
  // Rows that look at one window.
  struct Group {
    const AudioState* audio = nullptr;
    size_t first = 0, rows = 0;
  };
  // What align() keeps of a pass.
  struct Kept {
    std::span<const AlignmentHead> heads;
    float* weights = nullptr;  // of the pass's first row
    size_t head_stride = 0;
  };

  View<float, 2> rows(nn::Plane& plane, size_t first, size_t count);
  void embed(size_t row, int32_t token, size_t position);
  void prefill_pass(size_t hypothesis, std::span<const int32_t> tokens, const AudioState& audio, DecoderState& state);
  void run_layers(nn::Crew::Seat& seat, DecoderState& state);
  void run_layer(nn::Crew::Seat& seat, size_t index, DecoderState& state);
  void norm(nn::Crew::Seat& seat, const NormWeights& norm);
  View<const float, 2> normed(const nn::Part& part, const NormWeights& norm);
  void attend_self(const nn::Part& part, size_t layer, DecoderState& state);
  void attend_cross(const nn::Part& part, size_t layer);
  template <class T>
  void attend_self_head(const nn::Part& part, const Segment& segment, size_t layer, size_t head, DecoderState& state);
  template <class T>
  void attend_cross_head(const nn::Part& part, const Group& group, size_t layer, size_t head);
  template <class T>
  void keep_weights(const nn::Part& part, const Group& group, size_t layer, size_t head);
  View<const float, 2> logits(size_t first, size_t count);

  std::shared_ptr<const Model> model_;
  nn::Runner runner_;
  nn::Crew crew_;
  size_t max_step_rows_;
  bool stepping_ = false;  // rows of the pass are streams of their own
  size_t rows_ = 0;        // of the pass
  std::vector<Segment> segments_;
  std::vector<Group> groups_;
  Kept kept_;
  nn::Plane x_, normed_, qkv_, attended_, hidden_;  // [n, D], [n, D], [n, 3 D], [n, D], [n, F]
  nn::Plane logits_;                                // [max_step_rows_, V]
};

}  // namespace syrinx::whisper
