#include "nn/kv_cache.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "nn/rows.h"

namespace syrinx::nn {
namespace {

// A layer's heads, each with its rows behind each other, from rows [n, G * K] with the heads side by side ...
template <class T>
void set_heads(const KvCache& cache, std::span<const float> rows, T* heads) {
  const size_t width = cache.key_width(), size = cache.head_size, count = rows.size() / width;
  for (size_t head = 0; head < cache.key_heads; ++head)
    copy_rows(View<const float, 2>(rows.data() + head * size, {count, size}, {width, 1}),
              View<T, 2>(heads + head * cache.capacity * size, {count, size}));
}

// ... and back.
template <class T>
std::vector<float> rows_of_heads(const KvCache& cache, const T* heads) {
  const size_t width = cache.key_width(), size = cache.head_size, count = cache.position - cache.shared();
  std::vector<float> rows(count * width);
  for (size_t head = 0; head < cache.key_heads; ++head)
    copy_rows(View<const T, 2>(heads + head * cache.capacity * size, {count, size}),
              View<float, 2>(rows.data() + head * size, {count, size}, {width, 1}));
  return rows;
}

// Rows into a ring of as many rows as `to` has, from row `first` on.
template <class T>
void put_rows(View<const float, 2> rows, View<T, 2> to, size_t first) {
  const size_t count = rows.extent(0), width = rows.extent(1), before = std::min(count, to.extent(0) - first);
  copy_rows(View<const float, 2>(rows.data(), {before, width}, {rows.stride(0), 1}),
            View<T, 2>(to.row(first), {before, width}));
  if (before == count) return;
  copy_rows(View<const float, 2>(rows.row(before), {count - before, width}, {rows.stride(0), 1}),
            View<T, 2>(to.data(), {count - before, width}));
}

// The same in int8, `scales` those of the ring's rows.
void put_rows(View<const float, 2> rows, View<int8_t, 2> to, float* scales, size_t first) {
  const size_t count = rows.extent(0), width = rows.extent(1), before = std::min(count, to.extent(0) - first);
  quantise_rows(View<const float, 2>(rows.data(), {before, width}, {rows.stride(0), 1}),
                View<int8_t, 2>(to.row(first), {before, width}), scales + first);
  if (before == count) return;
  quantise_rows(View<const float, 2>(rows.row(before), {count - before, width}, {rows.stride(0), 1}),
                View<int8_t, 2>(to.data(), {count - before, width}), scales);
}

}  // namespace

Result<KvCache> KvCache::make(const Shape& shape) {
  if (shape.window > shape.capacity)
    return fail(Code::kInvalidArgument, "a ring of {} positions for a window of {}", shape.capacity, shape.window);
  const size_t rows = shape.layers * shape.capacity * shape.key_heads, scales = shape.type == DType::kI8 ? rows : 0;
  const size_t bytes = rows * shape.head_size * dtype_size(shape.type);
  if (2 * (bytes + scales * sizeof(float)) > kMaxCacheBytes)
    return fail(Code::kLimitExceeded,
                "a stream of {} positions needs {} bytes, the limit is {}; the model is too large", shape.capacity,
                2 * (bytes + scales * sizeof(float)), kMaxCacheBytes);
  KvCache cache;
  cache.type = shape.type;
  cache.layers = shape.layers;
  cache.key_heads = shape.key_heads;
  cache.head_size = shape.head_size;
  cache.capacity = shape.capacity;
  cache.window = shape.window;
  cache.keys = Buffer<std::byte>(bytes);
  cache.values = Buffer<std::byte>(bytes);
  cache.key_scales = Buffer<float>(scales);
  cache.value_scales = Buffer<float>(scales);
  return cache;
}

void KvCache::reset() {
  prefix = nullptr;
  position = 0;
  lost = 0;
  full = false;
}

void KvCache::truncate(size_t end) {
  SYRINX_CHECK(end >= shared() && end <= position, "position {} of {}, {} shared", end, position, shared());
  if (window > 0) {
    lost = std::max(lost, position - std::min(position, capacity));
    SYRINX_CHECK(lost == 0 || end + 1 >= lost + window, "position {} of {} in a ring of {} with a window of {}", end,
                 position, capacity, window);
  }
  position = end;
  full = false;
}

void KvCache::copy_from(const KvCache& other, size_t same) {
  SYRINX_CHECK(same_heads(other) && type == other.type && capacity == other.capacity && window == other.window,
               "{} x {} x {} x {} from {} x {} x {} x {}", layers, key_heads, capacity, head_size, other.layers,
               other.key_heads, other.capacity, other.head_size);
  SYRINX_CHECK(same == 0 || (window == 0 && prefix == other.prefix && same <= position && same <= other.position),
               "the first {} of {} positions from {}", same, position, other.position);
  if (this == &other) return;
  prefix = other.prefix;
  position = other.position;
  lost = other.lost;
  full = other.full;
  const size_t row_bytes = head_size * dtype_size(type), first = same - std::min(same, shared());
  const size_t count = std::min(position - shared(), capacity) - first;
  for (size_t head = 0; head < layers * key_heads; ++head) {
    const size_t row = head * capacity + first;
    std::copy_n(other.keys.data() + row * row_bytes, count * row_bytes, keys.data() + row * row_bytes);
    std::copy_n(other.values.data() + row * row_bytes, count * row_bytes, values.data() + row * row_bytes);
    if (type != DType::kI8) continue;
    std::copy_n(other.key_scales.data() + row, count, key_scales.data() + row);
    std::copy_n(other.value_scales.data() + row, count, value_scales.data() + row);
  }
}

KvCache KvCache::beginning(size_t count) const {
  SYRINX_CHECK(window == 0 && prefix == nullptr && count > 0 && count <= position,
               "the first {} of {} positions, window {}, {} shared", count, position, window, shared());
  Result<KvCache> made =
      make({.type = type, .layers = layers, .key_heads = key_heads, .head_size = head_size, .capacity = count});
  SYRINX_CHECK(made, "a part of a cache: {}", made.error().message);
  const size_t row_bytes = head_size * dtype_size(type);
  for (size_t head = 0; head < layers * key_heads; ++head) {
    const size_t from = head * capacity, to = head * count;
    std::copy_n(keys.data() + from * row_bytes, count * row_bytes, made->keys.data() + to * row_bytes);
    std::copy_n(values.data() + from * row_bytes, count * row_bytes, made->values.data() + to * row_bytes);
    if (type != DType::kI8) continue;
    std::copy_n(key_scales.data() + from, count, made->key_scales.data() + to);
    std::copy_n(value_scales.data() + from, count, made->value_scales.data() + to);
  }
  made->position = count;
  return *std::move(made);
}

void KvCache::begin_behind(std::shared_ptr<const KvCache> behind) {
  SYRINX_CHECK(
      same_heads(*behind) && type == behind->type && behind->prefix == nullptr && window == 0 && behind->window == 0,
      "a prefix of {} x {} x {}", behind->layers, behind->key_heads, behind->head_size);
  reset();
  position = behind->position;
  prefix = std::move(behind);
}

size_t KvCache::room() const {
  return window > 0 ? std::numeric_limits<size_t>::max() : shared() + capacity - position;
}

void KvCache::append(size_t layer, size_t key_head, View<const float, 2> new_keys, View<const float, 2> new_values) {
  const size_t first = (position - shared()) % capacity;
  if (type == DType::kI8) {
    const size_t at = offset(layer, key_head) / head_size;
    put_rows(new_keys, head_keys<int8_t>(layer, key_head), key_scales.data() + at, first);
    put_rows(new_values, head_values<int8_t>(layer, key_head), value_scales.data() + at, first);
  } else if (type == DType::kF32) {
    put_rows(new_keys, head_keys<float>(layer, key_head), first);
    put_rows(new_values, head_values<float>(layer, key_head), first);
  } else {
    put_rows(new_keys, head_keys<uint16_t>(layer, key_head), first);
    put_rows(new_values, head_values<uint16_t>(layer, key_head), first);
  }
}

std::vector<float> KvCache::layer_keys(size_t layer) const {
  SYRINX_CHECK(type != DType::kI8, "rows of an int8 cache");
  return type == DType::kF32 ? rows_of_heads(*this, head_keys<float>(layer, 0).data())
                             : rows_of_heads(*this, head_keys<uint16_t>(layer, 0).data());
}

std::vector<float> KvCache::layer_values(size_t layer) const {
  SYRINX_CHECK(type != DType::kI8, "rows of an int8 cache");
  return type == DType::kF32 ? rows_of_heads(*this, head_values<float>(layer, 0).data())
                             : rows_of_heads(*this, head_values<uint16_t>(layer, 0).data());
}

void KvCache::set_layer(size_t layer, std::span<const float> new_keys, std::span<const float> new_values) {
  SYRINX_CHECK(type != DType::kI8 && new_keys.size() <= capacity * key_width() && new_values.size() == new_keys.size(),
               "{} keys, {} values for {} rows of {}", new_keys.size(), new_values.size(), capacity, key_width());
  if (type == DType::kF32) {
    set_heads(*this, new_keys, head_keys<float>(layer, 0).data());
    set_heads(*this, new_values, head_values<float>(layer, 0).data());
  } else {
    set_heads(*this, new_keys, head_keys<uint16_t>(layer, 0).data());
    set_heads(*this, new_values, head_values<uint16_t>(layer, 0).data());
  }
}

}  // namespace syrinx::nn
