// State of a stream's decoder between frames: the last label, the LSTM states, and which frame comes next (spec
// transducer-asr.md, sections 4.4 and 5.6 (4)).  Its findings are output, not state.
//
// One block a stream: the first cache line holds the numbers that every decision reads, then the rows follow, each
// from a line of its own: b [J], what the prediction network adds to the joint, then h and c [P] of each layer.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/buffer.h"
#include "tensor/packed_matrix.h"

namespace syrinx::transducer {

struct DecoderWeights;
class BoostTree;

// Bits of DecoderState::faults, gathered in the steps and looked at after them: what was found means nothing.
enum DecoderFault : uint32_t {
  kFramesNotFinite = 1,  // what the encoder gave
  kLogitsNotFinite = 2,  // what the head made of it and of its state
  kTooManyLabels = 4,    // for the room that there is
};

class DecoderState {
 public:
  // A stream before its first frame, b computed from the start symbol when the first frame comes.
  explicit DecoderState(const DecoderWeights& weights);
  void reset();
  // Forgets the labels so far: the next one follows the start symbol, a favoured phrase begins anew.  Frames go on
  // counting.
  void forget_labels();
  // Room for a copy of another state of the same weights; allocates nothing.
  void copy_from(const DecoderState& other);

  // The numbers of the first line.  Frames count from the beginning of the stream.
  struct alignas(64) Head {
    int64_t decoded = 0;               // frames that have come
    int64_t frame = 0;                 // the one to look at next; a duration may lead beyond those that have come
    const BoostTree* boost = nullptr;  // words to favour; null: none.  Borrowed
    int32_t label = -1;                // found last; -1: none yet
    uint32_t emissions = 0;            // labels found at `frame`
    uint32_t boost_node = 0;           // how far one of those words has been heard
    uint32_t faults = 0;
    bool started = false;  // b holds what the prediction network says
  };
  Head& head() { return *reinterpret_cast<Head*>(block_.data()); }
  const Head& head() const { return *reinterpret_cast<const Head*>(block_.data()); }

  std::span<float> projection() { return {floats(sizeof(Head)), joint_}; }
  std::span<const float> projection() const { return {const_cast<DecoderState*>(this)->floats(sizeof(Head)), joint_}; }
  std::span<float> hidden(size_t layer) { return {row(2 * layer), width_}; }
  std::span<float> cell(size_t layer) { return {row(2 * layer + 1), width_}; }
  size_t size_bytes() const { return block_.size(); }

 private:
  float* floats(size_t at) { return reinterpret_cast<float*>(block_.data() + at); }
  float* row(size_t index) { return floats(sizeof(Head) + (joint_bytes_ + index * row_bytes_)); }

  size_t joint_, width_, joint_bytes_, row_bytes_;
  Buffer<std::byte> block_;
};

}  // namespace syrinx::transducer
