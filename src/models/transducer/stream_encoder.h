// The encoder of cache-aware models on streams, several at once (spec transducer-asr.md, section 3.6).  A step takes
// one chunk of each stream and gives its frames; in StreamMode::kExact they are, with f32 weights, those of the whole
// recording with the same context.  With narrow weights a recording's attention multiplies in bf16 where the processor
// has that (encoder.cc) and a stream's in f32, so both are near each other and no more: the greater the scores, the
// further apart their weights.  A stream gets the numbers that it gets alone, to the last bit.
//
// Where blocks see frames ahead, each takes a stream's frames as they come and gives those whose successors it has, so
// that none is computed twice; a step then gives as many frames as a chunk has, but of earlier sound.
//
// Scratch of one team of threads; one thread at a time.  A step allocates nothing.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/transducer/encoder_layers.h"
#include "models/transducer/encoder_state.h"
#include "models/transducer/position_table.h"
#include "models/transducer/subsampling.h"

namespace syrinx::transducer {

// The maker's steps: features that are run through again, and frames that they give, which are dropped.
inline size_t compat_mels(const EncoderConfig& config) { return config.factor + 1; }
inline constexpr size_t kCompatDrop = 2;

class StreamEncoder : private EncoderLayers {
 public:
  // One chunk of a stream [T, mels]: T is first_chunk_mels() for a stream that has not started, else chunk_mels();
  // fewer, or none, where the stream ends behind it; then none until EncoderState::finished().
  struct Input {
    EncoderState* state = nullptr;
    View<const float, 2> mels;
    bool last = false;
  };
  // The rows of the result that belong to a stream.
  struct Output {
    size_t first_row = 0, rows = 0;
  };

  // check_streaming() holds for the context; states must be made for the same.
  StreamEncoder(const std::shared_ptr<const EncoderWeights>& weights, nn::Runner& runner, AttentionContext context,
                size_t max_streams);

  using EncoderLayers::config;
  AttentionContext context() const { return context_; }
  size_t max_streams() const { return max_streams_; }

  // Frames [rows, d] of all streams, valid until the next step; outputs[n] says which are those of inputs[n].
  View<const float, 2> step(std::span<const Input> inputs, std::span<Output> outputs);

 private:
  // A stream's rows that a block takes, and those that it gives; and its frames that the block had taken and given
  // before.
  struct Segment {
    EncoderState* state = nullptr;
    size_t first = 0, rows = 0, first_given = 0, given = 0;
    size_t taken_before = 0, given_before = 0;
  };
  struct Plan {
    size_t rows = 0, given = 0;  // of all streams
    std::vector<Segment> segments;
    std::vector<size_t> segment_of;       // of each row given
    std::vector<kernels::KeyRange> sees;  // of each row given: of the keys that its stream's attention reads
  };

  const Plan& plan_of(size_t layer) const { return plans_[ahead_ == 0 ? 0 : layer]; }
  void plan(EncoderState& state, size_t position);
  void run_layer(nn::Crew::Seat& seat, size_t index) override;
  void release(const Segment& segment, size_t layer);
  void attend(const nn::Part& part, size_t layer) override;
  void attend_head(const nn::Part& part, const Segment& segment, size_t layer, size_t head);
  float* gated_row(size_t row, size_t layer) override;
  void convolve(const nn::Part& part, size_t layer) override;
  size_t prompt_of(size_t row) const override;
  Subsampler::Piece piece_of(const Input& input);
  void finish_state(EncoderState& state, size_t position) const;

  const AttentionContext context_;
  const size_t max_streams_, chunk_;
  const size_t ahead_;  // frames that each block waits for
  Subsampler subsampler_;
  PositionTable positions_;
  std::vector<Subsampler::Piece> pieces_;
  std::vector<size_t> counts_, positions_after_;
  std::vector<Plan> plans_;  // of each block where those differ, else of all
  nn::Plane subsampled_;
  nn::Plane queries_, released_;  // [rows, d], of rows that a block gives: q, and x before attention
};

}  // namespace syrinx::transducer
