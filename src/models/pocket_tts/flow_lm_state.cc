#include "models/pocket_tts/flow_lm_state.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "nn/rows.h"

namespace syrinx::pocket {
namespace {

// A layer's heads, each with its rows behind each other, from rows [n, G * K] with the heads side by side ...
template <class T>
void set_heads(const FlowLmState& state, std::span<const float> rows, T* heads) {
  const size_t width = state.key_width(), size = state.head_size, count = rows.size() / width;
  for (size_t head = 0; head < state.key_heads; ++head)
    nn::copy_rows(View<const float, 2>(rows.data() + head * size, {count, size}, {width, 1}),
                  View<T, 2>(heads + head * state.capacity * size, {count, size}));
}
// ... and back.
template <class T>
std::vector<float> rows_of_heads(const FlowLmState& state, const T* heads) {
  const size_t width = state.key_width(), size = state.head_size, count = state.position - state.shared();
  std::vector<float> rows(count * width);
  for (size_t head = 0; head < state.key_heads; ++head)
    nn::copy_rows(View<const T, 2>(heads + head * state.capacity * size, {count, size}),
                  View<float, 2>(rows.data() + head * size, {count, size}, {width, 1}));
  return rows;
}

}  // namespace

Result<FlowLmState> FlowLmState::make(const FlowLmWeights& weights, size_t capacity) {
  if (capacity > kMaxPositions)
    return fail(Code::kLimitExceeded, "a stream of {} positions, the limit is {}; split the text", capacity,
                kMaxPositions);
  const TransformerConfig& t = weights.config.transformer;
  const DType type = cache_type(weights.precision);
  const size_t bytes = weights.layers.size() * capacity * t.key_width() * dtype_size(type);
  if (2 * bytes > kMaxStateBytes)
    return fail(Code::kLimitExceeded,
                "a stream of {} positions needs {} bytes, the limit is {}; the model is too large", capacity, 2 * bytes,
                kMaxStateBytes);
  FlowLmState state;
  state.type = type;
  state.layers = weights.layers.size();
  state.key_heads = t.key_heads;
  state.head_size = t.head_size();
  state.capacity = capacity;
  state.keys = Buffer<std::byte>(bytes);
  state.values = Buffer<std::byte>(bytes);
  return state;
}

void FlowLmState::reset() {
  voice = nullptr;
  position = 0;
  full = false;
}

Status FlowLmState::start_after(std::shared_ptr<const FlowLmState> before) {
  if (before->layers != layers || before->key_heads != key_heads || before->head_size != head_size)
    return fail(Code::kInvalidArgument,
                "the voice has {} layers of {} x {} numbers, the model {} of {} x {}; it was made for another model",
                before->layers, before->key_heads, before->head_size, layers, key_heads, head_size);
  if (before->type != type)
    return fail(Code::kInvalidArgument, "the voice is in {}, the model in {}; make it under the model's precision",
                dtype_name(before->type), dtype_name(type));
  if (before->voice != nullptr) return fail(Code::kInvalidArgument, "a stream that speaks cannot be a voice");
  if (before->position + capacity > kMaxPositions)
    return fail(Code::kLimitExceeded,
                "a stream of {} positions, {} of them the voice's; the limit is {}; split the text",
                before->position + capacity, before->position, kMaxPositions);
  reset();
  position = before->position;
  voice = std::move(before);
  return {};
}

std::vector<float> FlowLmState::layer_keys(size_t layer) const {
  return type == DType::kF32 ? rows_of_heads(*this, head_keys<float>(layer, 0).data())
                             : rows_of_heads(*this, head_keys<uint16_t>(layer, 0).data());
}

std::vector<float> FlowLmState::layer_values(size_t layer) const {
  return type == DType::kF32 ? rows_of_heads(*this, head_values<float>(layer, 0).data())
                             : rows_of_heads(*this, head_values<uint16_t>(layer, 0).data());
}

void FlowLmState::set_layer(size_t layer, std::span<const float> new_keys, std::span<const float> new_values) {
  SYRINX_CHECK(new_keys.size() <= capacity * key_width() && new_values.size() == new_keys.size(),
               "{} keys, {} values for {} rows of {}", new_keys.size(), new_values.size(), capacity, key_width());
  if (type == DType::kF32) {
    set_heads(*this, new_keys, head_keys<float>(layer, 0).data());
    set_heads(*this, new_values, head_values<float>(layer, 0).data());
  } else {
    set_heads(*this, new_keys, head_keys<uint16_t>(layer, 0).data());
    set_heads(*this, new_values, head_values<uint16_t>(layer, 0).data());
  }
}

}  // namespace syrinx::pocket
