// Keys and values that a decoder's cross-attention reads: made once from another model's output, then shared by any
// number of streams.  Written by one thread or by several in parts of their own, then read by any number.
#pragma once

#include "base/check.h"
#include "tensor/buffer.h"
#include "tensor/dtype.h"
#include "tensor/view.h"

namespace syrinx::nn {

struct CrossCache {
  DType type = DType::kF32;  // or kBF16
  size_t layers = 0, heads = 0, head_size = 0, room = 0;
  size_t positions = 0;            // that are there, at most `room`
  Buffer<std::byte> keys, values;  // [layers, heads, room, head size]

  CrossCache() = default;
  CrossCache(DType type, size_t layers, size_t heads, size_t head_size, size_t room)
      : type(type), layers(layers), heads(heads), head_size(head_size), room(room) {
    keys = Buffer<std::byte>(layers * heads * room * head_size * dtype_size(type));
    values = Buffer<std::byte>(keys.size());
  }

  // [positions, head size]; T is float, or uint16_t for bf16, as `type` says.
  template <class T>
  View<T, 2> head_keys(size_t layer, size_t head) {
    return {reinterpret_cast<T*>(keys.data()) + offset(layer, head), {positions, head_size}};
  }
  template <class T>
  View<T, 2> head_values(size_t layer, size_t head) {
    return {reinterpret_cast<T*>(values.data()) + offset(layer, head), {positions, head_size}};
  }
  template <class T>
  View<const T, 2> head_keys(size_t layer, size_t head) const {
    return {reinterpret_cast<const T*>(keys.data()) + offset(layer, head), {positions, head_size}};
  }
  template <class T>
  View<const T, 2> head_values(size_t layer, size_t head) const {
    return {reinterpret_cast<const T*>(values.data()) + offset(layer, head), {positions, head_size}};
  }

 private:
  size_t offset(size_t layer, size_t head) const { return (layer * heads + head) * room * head_size; }
};

}  // namespace syrinx::nn
