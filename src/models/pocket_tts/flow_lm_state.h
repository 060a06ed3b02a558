// What one stream of the language model remembers, or what a voice is: the keys (rotated) and values of every position
// so far (spec pocket-tts.md, sections 3.2 and 5; the maker's pocket_tts/modules/transformer.py).
//
// They are most of what a step reads besides the weights, so the narrow precisions keep them in bf16, rounded to the
// nearest as they are written; under f32 they are f32.  A key head's rows lie behind each other, in the order in which
// attention reads them.
//
// One pass at a time may write a state; a voice that streams refer to is not written any more, and any number of
// threads may read it.  G key heads, K numbers a head.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/pocket_tts/flow_lm_weights.h"
#include "tensor/buffer.h"
#include "tensor/dtype.h"
#include "tensor/view.h"

namespace syrinx::pocket {

// Positions that a state may have at most: 11 minutes of speech; the angles of rotary() are accurate that far.
inline constexpr size_t kMaxPositions = 8192;
// The published models need 1.6 GB for so many at most; a hostile file could ask for hundreds.
inline constexpr size_t kMaxStateBytes = size_t{4} << 30;

// In which type a model of this precision remembers: kF32 or kBF16.
constexpr DType cache_type(Precision precision) { return precision == Precision::kF32 ? DType::kF32 : DType::kBF16; }

struct FlowLmState {
  DType type = DType::kF32;  // of keys and values, or kBF16
  size_t layers = 0, key_heads = 0, head_size = 0, capacity = 0;
  std::shared_ptr<const FlowLmState> voice;  // holds the first positions; the rows here follow them
  Buffer<std::byte> keys, values;            // [layers, G, capacity, K]
  size_t position = 0;                       // of the next row; rows behind it hold nothing
  bool full = false;                         // a step was refused because there was no room

  // Room for `capacity` positions of its own.  kLimitExceeded beyond kMaxPositions.
  static Result<FlowLmState> make(const FlowLmWeights& weights, size_t capacity);
  // Empty, without a voice.
  void reset();
  // Empty behind a voice, which is referred to and must not change any more.  kInvalidArgument: another model's voice
  // or another precision's, or a stream that has a voice itself.  kLimitExceeded: more than kMaxPositions together.
  Status start_after(std::shared_ptr<const FlowLmState> voice);

  size_t shared() const { return voice == nullptr ? 0 : voice->position; }  // positions before the first row
  size_t room() const { return shared() + capacity - position; }
  size_t key_width() const { return key_heads * head_size; }
  size_t bytes() const { return keys.size() + values.size(); }  // of its own rows, used or not

  // Rows of one key head, [capacity, K]; T is float or, for bf16, uint16_t, as `type` says.
  template <class T>
  View<T, 2> head_keys(size_t layer, size_t key_head) {
    return {reinterpret_cast<T*>(keys.data()) + offset(layer, key_head), {capacity, head_size}};
  }
  template <class T>
  View<T, 2> head_values(size_t layer, size_t key_head) {
    return {reinterpret_cast<T*>(values.data()) + offset(layer, key_head), {capacity, head_size}};
  }
  // Those of the positions that have been read.
  template <class T>
  View<const T, 2> head_keys(size_t layer, size_t key_head) const {
    return {reinterpret_cast<const T*>(keys.data()) + offset(layer, key_head), {position - shared(), head_size}};
  }
  template <class T>
  View<const T, 2> head_values(size_t layer, size_t key_head) const {
    return {reinterpret_cast<const T*>(values.data()) + offset(layer, key_head), {position - shared(), head_size}};
  }

  // A copy of what has been read into the rows here, widened: [positions, G * K], heads side by side.
  std::vector<float> layer_keys(size_t layer) const;
  std::vector<float> layer_values(size_t layer) const;
  // The reverse: the first rows of a layer, rounded to `type`; keys and values are [n, G * K], n <= capacity.
  void set_layer(size_t layer, std::span<const float> new_keys, std::span<const float> new_values);

 private:
  size_t offset(size_t layer, size_t key_head) const { return (layer * key_heads + key_head) * capacity * head_size; }
};

}  // namespace syrinx::pocket
