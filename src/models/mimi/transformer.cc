#include "models/mimi/transformer.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/bf16.h"
#include "kernels/cache_attention.h"
#include "kernels/layer_norm.h"
#include "kernels/rotary.h"
#include "kernels/row_conv.h"

namespace syrinx::mimi {

using kernels::RowActivation;
using kernels::RowConv;
using kernels::RowType;
using kernels::Storage;

namespace {

constexpr float kEpsilon = 1e-5f;

// Columns [begin, begin + count) of some rows of a plane.
View<float, 2> slice(nn::Plane& plane, Range rows, size_t begin, size_t count) {
  return {plane.f32(rows.begin) + begin, {rows.end - rows.begin, count}, {plane.stride(), 1}};
}

View<float, 2> slice(View<float, 2> x, Range rows) {
  return {x.data() + rows.begin * x.stride(0), {rows.end - rows.begin, x.extent(1)}, {x.stride(0), 1}};
}

// This member's share of a linear layer, of which `work` says where the results go.
void linear_share(const nn::Part& part, const PackedMatrix& matrix, ReadyRows& x, size_t rows, RowConv work) {
  work.input = x.at(0, 0);
  work.input_type = x.type();
  work.row_step = x.stride();
  work.rows = rows;
  const auto own = kernels::share_row_conv(matrix, rows, part.rank, part.size);
  kernels::row_conv(matrix, work, own.rows, own.panels);
}

const float* or_null(const std::vector<float>& values) { return values.empty() ? nullptr : values.data(); }

}  // namespace

void ReadyRows::prepare(size_t rows, size_t channels, kernels::RowType type) {
  stride_ = round_up(channels, kPanelColumns);
  type_ = type;
  bytes_ = Buffer<std::byte>(kernels::row_bytes(type, rows * stride_));
}

Transformer::Transformer(const TransformerWeights& weights, size_t step, nn::Runner& runner)
    : w_(weights), step_(step) {
  const nn::TransformerConfig& c = w_.config;
  normed_.prepare(step, c.width, w_.row_type);
  attended_.prepare(step, c.attention_width, w_.row_type);
  hidden_.prepare(step, c.hidden, w_.row_type);
  unrounded_.prepare(step, std::max(c.width, c.attention_width), Storage::kF32);
  qkv_.prepare(step, c.attention_width + 2 * c.key_width(), Storage::kF32);
  cosine_.prepare(step, c.head_size() / 2, Storage::kF32);
  sine_.prepare(step, c.head_size() / 2, Storage::kF32);
  for (int member = 0; member < runner.team().size(); ++member)
    scratch_.emplace_back(kernels::cache_attention_scratch_size(ring_rows()));
}

TransformerState Transformer::make_state() const {
  TransformerState state;
  for (size_t i = 0; i < w_.layers.size(); ++i) {
    state.keys.emplace_back(ring_rows() * w_.config.key_width());
    state.values.emplace_back(ring_rows() * w_.config.key_width());
  }
  return state;
}

template <class Fill>
void Transformer::fill_ready(ReadyRows& to, Range rows, Range columns, const Fill& fill) {
  std::byte* const ready = to.at(rows.begin, columns.begin);
  if (to.type() == RowType::kF32) {
    fill(View<float, 2>(reinterpret_cast<float*>(ready), {rows.end - rows.begin, columns.end - columns.begin},
                        {to.stride(), 1}));
  } else {
    const View<float, 2> values = slice(unrounded_, rows, columns.begin, columns.end - columns.begin);
    fill(values);
    kernels::round_rows(values, reinterpret_cast<uint16_t*>(ready), to.stride());
  }
}

void Transformer::attention_block(nn::Crew::Seat& seat, size_t index, TransformerState& state, View<float, 2> x) {
  const nn::TransformerConfig& c = w_.config;
  const TransformerLayer& layer = w_.layers[index];
  const size_t rows = x.extent(0), width = c.attention_width, key_width = c.key_width(), head_size = c.head_size();
  const size_t group = c.heads / c.key_heads;
  float* const keys = state.keys[index].data();
  float* const values = state.values[index].data();
  seat.stage([&](const nn::Part& part) {
    const Range own = part.split(rows);
    fill_ready(normed_, own, {0, c.width}, [&](View<float, 2> to) {
      kernels::layer_norm(slice(x, own), {layer.norm1_gain.data(), layer.norm1_bias.data()}, kEpsilon, to);
    });
  });
  seat.stage([&](const nn::Part& part) {
    linear_share(part, layer.in_proj.view, normed_, rows, {.output = qkv_.f32(), .stride = qkv_.stride()});
  });
  seat.stage([&](const nn::Part& part) {
    const Range own = part.split(rows);
    kernels::rotary(slice(cosine_.view(), own), slice(sine_.view(), own), slice(qkv_, own, 0, width + key_width));
    for (size_t t = own.begin; t < own.end; ++t) {
      for (size_t head = 0; head < c.key_heads; ++head) {
        const size_t row = (head * ring_rows() + (state.position + t) % ring_rows()) * head_size;
        const float* const key = qkv_.f32(t) + width + head * head_size;
        std::copy_n(key, head_size, keys + row);
        std::copy_n(key + key_width, head_size, values + row);
      }
    }
  });
  seat.stage([&](const nn::Part& part) {
    const Range heads = part.split(c.heads);
    for (size_t head = heads.begin; head < heads.end;) {  // those of one key head at a time
      const size_t key_head = head / group, end = std::min(heads.end, (key_head + 1) * group);
      const size_t ring = key_head * ring_rows() * head_size, column = head * head_size;
      const kernels::CacheAttentionInput in{.q = slice(qkv_, {0, rows}, column, (end - head) * head_size),
                                            .keys = {keys + ring, {ring_rows(), head_size}},
                                            .values = {values + ring, {ring_rows(), head_size}},
                                            .heads = end - head,
                                            .key_heads = 1,
                                            .head_size = head_size,
                                            .first_position = state.position,
                                            .window = c.window,
                                            .scale = 1.0f / std::sqrt(static_cast<float>(head_size))};
      fill_ready(attended_, {0, rows}, {column, end * head_size}, [&](View<float, 2> to) {
        kernels::cache_attention(in, {0, end - head}, scratch_[static_cast<size_t>(part.member)].span(), to);
      });
      head = end;
    }
  });
  seat.stage([&](const nn::Part& part) {
    linear_share(part, layer.out_proj.view, attended_, rows,
                 {.output = x.data(),
                  .stride = x.stride(0),
                  .residual = x.data(),
                  .residual_stride = x.stride(0),
                  .scale = or_null(layer.scale1)});
  });
}

void Transformer::feed_forward_block(nn::Crew::Seat& seat, const TransformerLayer& layer, View<float, 2> x) {
  const nn::TransformerConfig& c = w_.config;
  const size_t rows = x.extent(0);
  seat.stage([&](const nn::Part& part) {
    const Range own = part.split(rows);
    fill_ready(normed_, own, {0, c.width}, [&](View<float, 2> to) {
      kernels::layer_norm(slice(x, own), {layer.norm2_gain.data(), layer.norm2_bias.data()}, kEpsilon, to);
    });
  });
  seat.stage([&](const nn::Part& part) {
    linear_share(part, layer.linear1.view, normed_, rows,
                 {.activated = hidden_.at(0, 0),
                  .activated_type = hidden_.type(),
                  .stride = hidden_.stride(),
                  .activation = c.gelu_erf ? RowActivation::kGeluErf : RowActivation::kGeluTanh});
  });
  seat.stage([&](const nn::Part& part) {
    linear_share(part, layer.linear2.view, hidden_, rows,
                 {.output = x.data(),
                  .stride = x.stride(0),
                  .residual = x.data(),
                  .residual_stride = x.stride(0),
                  .scale = or_null(layer.scale2)});
  });
}

void Transformer::run(nn::Crew::Seat& seat, TransformerState& state, View<float, 2> x, std::string_view stage,
                      const Probe& probe) {
  SYRINX_CHECK(x.extent(0) <= step_ && x.extent(1) == w_.config.width && state.keys.size() == w_.layers.size(),
               "[{}, {}] into a transformer of {} x {}", x.extent(0), x.extent(1), step_, w_.config.width);
  // The position is read inside stages alone: who joins later walks past while it may already move on.
  seat.stage([&](const nn::Part& part) {
    const Range own = part.split(x.extent(0));
    kernels::rotary_angles(w_.theta, state.position + own.begin, slice(cosine_.view(), own), slice(sine_.view(), own));
  });
  for (size_t i = 0; i < w_.layers.size(); ++i) {
    attention_block(seat, i, state, x);
    feed_forward_block(seat, w_.layers[i], x);
    if (!probe) continue;
    seat.stage([&](const nn::Part& part) {
      if (part.rank == 0) probe(stage, i, x);
    });
  }
  seat.stage([&](const nn::Part& part) {
    if (part.rank == 0) state.position += x.extent(0);
  });
}

}  // namespace syrinx::mimi
