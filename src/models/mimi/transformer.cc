#include "models/mimi/transformer.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/activation.h"
#include "kernels/cache_attention.h"
#include "kernels/layer_norm.h"
#include "kernels/rotary.h"

namespace syrinx::mimi {

using kernels::Storage;

namespace {

constexpr float kEpsilon = 1e-5f;

// Columns [begin, begin + count) of the first rows of a plane.
View<float, 2> part(nn::Plane& plane, size_t rows, size_t begin, size_t count) {
  return {plane.f32() + begin, {rows, count}, {plane.stride(), 1}};
}

}  // namespace

Transformer::Transformer(const TransformerWeights& weights, size_t step, nn::Runner& runner)
    : w_(weights), runner_(runner) {
  const nn::TransformerConfig& c = w_.config;
  normed_.prepare(step, c.width, Storage::kF32);
  qkv_.prepare(step, c.attention_width + 2 * c.key_width(), Storage::kF32);
  attended_.prepare(step, c.attention_width, Storage::kF32);
  hidden_.prepare(step, c.hidden, Storage::kF32);
  cosine_.prepare(step, c.head_size() / 2, Storage::kF32);
  sine_.prepare(step, c.head_size() / 2, Storage::kF32);
  for (int member = 0; member < runner_.team().size(); ++member) {
    scratch_.emplace_back(kernels::cache_attention_scratch_size(ring_rows()));
    for (const TransformerLayer& layer : w_.layers)
      for (const auto* matrix : {&layer.in_proj, &layer.out_proj, &layer.linear1, &layer.linear2})
        runner_.scratch(member, kernels::conv_scratch_bytes(matrix->view, {.rows = step}));
  }
}

TransformerState Transformer::make_state() const {
  TransformerState state;
  for (size_t i = 0; i < w_.layers.size(); ++i) {
    state.keys.emplace_back(ring_rows() * w_.config.key_width());
    state.values.emplace_back(ring_rows() * w_.config.key_width());
  }
  return state;
}

void Transformer::attend(const TransformerLayer& layer, View<float, 2> keys, View<float, 2> values, size_t first,
                         View<float, 2> x) {
  const nn::TransformerConfig& c = w_.config;
  const size_t rows = x.extent(0), width = c.attention_width, key_width = c.key_width();
  kernels::layer_norm(x, {layer.norm1_gain.data(), layer.norm1_bias.data()}, kEpsilon, part(normed_, rows, 0, c.width));
  runner_.linear(layer.in_proj.view, part(normed_, rows, 0, c.width), part(qkv_, rows, 0, width + 2 * key_width));
  kernels::rotary(cosine_.view(), sine_.view(), part(qkv_, rows, 0, width + key_width));
  for (size_t t = 0; t < rows; ++t) {
    const size_t row = (first + t) % ring_rows();
    std::copy_n(qkv_.f32(t) + width, key_width, keys.row(row));
    std::copy_n(qkv_.f32(t) + width + key_width, key_width, values.row(row));
  }
  const kernels::CacheAttentionInput in{.q = part(qkv_, rows, 0, width),
                                        .keys = keys,
                                        .values = values,
                                        .heads = c.heads,
                                        .key_heads = c.key_heads,
                                        .head_size = c.head_size(),
                                        .first_position = first,
                                        .window = c.window,
                                        .scale = 1.0f / std::sqrt(static_cast<float>(c.head_size()))};
  runner_.team().run([&](int member) {
    const Range own = split_range(c.heads, member, runner_.team().size());
    if (own.begin < own.end)
      kernels::cache_attention(in, own, scratch_[static_cast<size_t>(member)].span(), part(attended_, rows, 0, width));
  });
  runner_.conv(layer.out_proj.view, {.rows = rows},
               {.data = attended_.row(0), .rows = rows, .stride = attended_.stride()},
               {.data = x.data(), .stride = x.stride(0), .residual = x.data(), .residual_stride = x.stride(0)});
}

void Transformer::feed_forward(const TransformerLayer& layer, View<float, 2> x) {
  const nn::TransformerConfig& c = w_.config;
  const size_t rows = x.extent(0);
  kernels::layer_norm(x, {layer.norm2_gain.data(), layer.norm2_bias.data()}, kEpsilon, part(normed_, rows, 0, c.width));
  runner_.linear(layer.linear1.view, part(normed_, rows, 0, c.width), part(hidden_, rows, 0, c.hidden));
  const auto gelu = c.gelu_erf ? kernels::gelu_erf : kernels::gelu_tanh;
  runner_.split(rows, [&](size_t begin, size_t end) {
    const std::span<float> own(hidden_.f32(begin), (end - begin) * hidden_.stride());
    gelu(own, own);
  });
  runner_.conv(layer.linear2.view, {.rows = rows}, {.data = hidden_.row(0), .rows = rows, .stride = hidden_.stride()},
               {.data = x.data(), .stride = x.stride(0), .residual = x.data(), .residual_stride = x.stride(0)});
}

void Transformer::run(TransformerState& state, View<float, 2> x, std::string_view stage, const Probe& probe) {
  SYRINX_CHECK(x.extent(0) <= normed_.rows() && x.extent(1) == w_.config.width && state.keys.size() == w_.layers.size(),
               "[{}, {}] into a transformer of {} x {}", x.extent(0), x.extent(1), normed_.rows(), w_.config.width);
  kernels::rotary_angles(w_.theta, state.position, cosine_.view(), sine_.view());
  for (size_t i = 0; i < w_.layers.size(); ++i) {
    const std::array<size_t, 2> ring{ring_rows(), w_.config.key_width()};
    attend(w_.layers[i], {state.keys[i].data(), ring}, {state.values[i].data(), ring}, state.position, x);
    feed_forward(w_.layers[i], x);
    if (probe) probe(stage, i, x);
  }
  state.position += x.extent(0);
}

}  // namespace syrinx::mimi
