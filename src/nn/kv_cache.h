// The memory that a causal decoder has of one stream: the keys (rotated) and values of the positions that it has read.
//
// They are most of what a step reads besides the weights, so they may be kept in bf16, rounded to the nearest as they
// are written, or in int8 with a scale a position and key head.  The rows of a key head lie behind each other, in the
// order in which attention reads them (kernels/cache_attention.h).
//
// A linear cache keeps every position until it is full.  A ring keeps the last `capacity` positions for layers with a
// window and is never full; with a window w it takes passes of up to capacity - w + 1 rows.  A linear cache may begin
// behind a prefix: a cache whose positions any number of streams share.
//
// One pass at a time may write a cache; a cache that is a prefix is not written any more, and any number of threads may
// read it.  G key heads, K numbers a head.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "tensor/buffer.h"
#include "tensor/dtype.h"
#include "tensor/view.h"

namespace syrinx::nn {

// Positions that a stream may have at most; the angles of rotary() are accurate that far.
inline constexpr size_t kMaxPositions = 8192;
// A cache is not larger, whatever the file of the model says.
inline constexpr size_t kMaxCacheBytes = size_t{4} << 30;

struct KvCache {
  DType type = DType::kF32;  // of keys and values, or kBF16, kI8
  size_t layers = 0, key_heads = 0, head_size = 0, capacity = 0;
  size_t window = 0;                       // of a ring; 0: linear
  std::shared_ptr<const KvCache> prefix;   // holds the first positions; the rows here follow them
  Buffer<std::byte> keys, values;          // [layers, G, capacity, K]
  Buffer<float> key_scales, value_scales;  // of kI8, [layers, G, capacity]
  size_t position = 0;                     // of the next row
  size_t lost = 0;                         // positions of a ring before this one are overwritten, as truncate() saw it
  bool full = false;                       // a step was refused because there was no room

  // Room for `capacity` positions, none read.  kLimitExceeded: more than kMaxCacheBytes.  kInvalidArgument: a ring that
  // is shorter than its window.
  struct Shape {
    DType type = DType::kF32;
    size_t layers = 0, key_heads = 0, head_size = 0, capacity = 0, window = 0;
  };
  static Result<KvCache> make(const Shape& shape);

  // Forgets everything, the prefix included.
  void reset();
  // Forgets the positions from `end` on.  `end` is not in the prefix, and a ring must still hold what the window of
  // position `end` needs.
  void truncate(size_t end);
  // Reads what `other`, a cache of the same shape, has read; a prefix is shared, not copied.  Of a linear cache the
  // rows of the first `same` positions are known to be those of `other`, and are left.  Allocates nothing.
  void copy_from(const KvCache& other, size_t same = 0);
  // The first `count` positions of a linear cache without prefix, as a cache of that capacity: a prefix for others.
  KvCache beginning(size_t count) const;
  // Empty behind a prefix of the same heads and type, which has none itself.
  void begin_behind(std::shared_ptr<const KvCache> shared);

  size_t shared() const { return prefix == nullptr ? 0 : prefix->position; }  // positions before the first row
  size_t room() const;                                                        // rows that still fit
  // Rows that one pass may add: all that fit, in a ring those that leave the window of the first one.
  size_t pass_room() const { return window == 0 ? room() : capacity - window + 1; }
  size_t key_width() const { return key_heads * head_size; }
  // Its own rows, used or not.
  size_t bytes() const { return keys.size() + values.size() + 2 * key_scales.size() * sizeof(float); }
  bool same_heads(const KvCache& other) const {
    return layers == other.layers && key_heads == other.key_heads && head_size == other.head_size;
  }

  // Rows of one key head, [capacity, K]; T is float, or uint16_t for bf16, int8_t, as `type` says.
  template <class T>
  View<T, 2> head_keys(size_t layer, size_t key_head) {
    return {reinterpret_cast<T*>(keys.data()) + offset(layer, key_head), {capacity, head_size}};
  }
  template <class T>
  View<T, 2> head_values(size_t layer, size_t key_head) {
    return {reinterpret_cast<T*>(values.data()) + offset(layer, key_head), {capacity, head_size}};
  }
  // Those of the positions that have been read, of a linear cache.
  template <class T>
  View<const T, 2> head_keys(size_t layer, size_t key_head) const {
    return {reinterpret_cast<const T*>(keys.data()) + offset(layer, key_head), {position - shared(), head_size}};
  }
  template <class T>
  View<const T, 2> head_values(size_t layer, size_t key_head) const {
    return {reinterpret_cast<const T*>(values.data()) + offset(layer, key_head), {position - shared(), head_size}};
  }

  // The scales of a key head of kI8, [capacity, 1].
  View<const float, 2> head_key_scales(size_t layer, size_t key_head) const {
    return {key_scales.data() + offset(layer, key_head) / head_size, {capacity, 1}};
  }
  View<const float, 2> head_value_scales(size_t layer, size_t key_head) const {
    return {value_scales.data() + offset(layer, key_head) / head_size, {capacity, 1}};
  }

  // Keeps the new rows [n, K] of a key head at positions from `position` on, rounded to `type`.
  void append(size_t layer, size_t key_head, View<const float, 2> new_keys, View<const float, 2> new_values);

  // A copy of what a linear cache of f32 or bf16 has read into its own rows, widened: [positions, G * K], heads side by
  // side.
  std::vector<float> layer_keys(size_t layer) const;
  std::vector<float> layer_values(size_t layer) const;
  // The reverse: the first rows of a layer, rounded to `type`; keys and values are [n, G * K], n <= capacity.
  void set_layer(size_t layer, std::span<const float> new_keys, std::span<const float> new_values);

 private:
  size_t offset(size_t layer, size_t key_head) const { return (layer * key_heads + key_head) * capacity * head_size; }
};

}  // namespace syrinx::nn
