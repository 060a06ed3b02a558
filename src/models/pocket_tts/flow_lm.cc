#include "models/pocket_tts/flow_lm.h"

#include <algorithm>
#include <cmath>

#include "kernels/activation.h"
#include "kernels/cache_attention.h"
#include "kernels/rotary.h"
#include "nn/linear.h"

namespace syrinx::pocket {
namespace {

constexpr float kEpsilon = 1e-5f;
// Rows of one pass of a prefill: whole blocks of the matrix product (conv.h), and scratch that does not grow with text.
constexpr size_t kPassRows = 126;

View<float, 2> rows_of(nn::Plane& plane, size_t begin, size_t end) {
  return {plane.f32(begin), {end - begin, plane.channels()}, {plane.stride(), 1}};
}
View<float, 2> rows_of(nn::Plane& plane, size_t rows) { return rows_of(plane, 0, rows); }

// work(begin, end) over rows, shared among the threads unless there is but one.
template <class Work>
void each_row(nn::Runner& runner, size_t rows, const Work& work) {
  if (rows == 1) return work(size_t{0}, size_t{1});
  runner.split(rows, work);
}

}  // namespace

Result<FlowLmState> FlowLmState::make(const FlowLmWeights& weights, size_t capacity) {
  if (capacity > kMaxPositions)
    return fail(Code::kLimitExceeded, "a stream of {} positions, the limit is {}; split the text", capacity,
                kMaxPositions);
  const size_t bytes = weights.layers.size() * capacity * weights.config.transformer.key_width() * 2 * sizeof(float);
  if (bytes > kMaxStateBytes)
    return fail(Code::kLimitExceeded,
                "a stream of {} positions needs {} bytes, the limit is {}; the model is too large", capacity, bytes,
                kMaxStateBytes);
  FlowLmState state;
  state.layers = weights.layers.size();
  state.capacity = capacity;
  state.key_width = weights.config.transformer.key_width();
  state.keys = Buffer<float>(state.layers * capacity * state.key_width);
  state.values = Buffer<float>(state.layers * capacity * state.key_width);
  return state;
}

void FlowLmState::reset() {
  position = 0;
  full = false;
}

Status FlowLmState::copy_from(const FlowLmState& voice) {
  if (voice.layers != layers || voice.key_width != key_width)
    return fail(Code::kInvalidArgument,
                "the voice has {} layers of {} numbers, the model {} of {}; it was made for another model",
                voice.layers, voice.key_width, layers, key_width);
  if (voice.position > capacity)
    return fail(Code::kLimitExceeded, "the voice has {} positions, the stream room for {}", voice.position, capacity);
  reset();
  position = voice.position;
  for (size_t i = 0; i < layers; ++i) {
    const size_t from = i * voice.capacity * key_width, to = i * capacity * key_width, count = position * key_width;
    std::copy_n(voice.keys.data() + from, count, keys.data() + to);
    std::copy_n(voice.values.data() + from, count, values.data() + to);
  }
  return {};
}

FlowLm::FlowLm(std::shared_ptr<const FlowLmWeights> weights, nn::Runner& runner)
    : weights_(std::move(weights)), runner_(runner) {
  const FlowLmWeights& w = *weights_;
  const TransformerConfig& t = w.config.transformer;
  const auto prepare = [](nn::Plane& plane, size_t rows, size_t channels) {
    plane.prepare(rows, channels, kernels::Storage::kF32);
  };
  prepare(voice_, kPassRows, w.voice_width);
  prepare(text_, kPassRows, w.text_width());
  prepare(latent_, 1, w.latent);
  for (nn::Plane* plane : {&x_, &normed_}) prepare(*plane, kPassRows, t.width);
  prepare(qkv_, kPassRows, t.attention_width + 2 * t.key_width());
  prepare(attended_, kPassRows, t.attention_width);
  prepare(hidden_, kPassRows, t.hidden);
  for (nn::Plane* plane : {&cosines_, &sines_}) prepare(*plane, kPassRows, w.theta.size());
  prepare(condition_, 1, w.config.condition);
  prepare(logit_, 1, 1);
  for (const FlowLmLayer& layer : w.layers) {
    for (const auto* matrix : {&layer.in_proj, &layer.out_proj, &layer.linear1, &layer.linear2})
      nn::reserve_linear(runner_, matrix->view, kPassRows);
  }
  const size_t attention_bytes = kernels::cache_attention_scratch_size(kMaxPositions) * sizeof(float);
  for (int member = 0; member < runner_.team().size(); ++member) runner_.scratch(member, attention_bytes);
}

Status FlowLm::check_room(const FlowLmState& state, size_t rows) const {
  if (rows <= state.capacity - state.position) return {};
  return fail(Code::kLimitExceeded, "{} rows more after position {} of a stream that has room for {}", rows,
              state.position, state.capacity);
}

void FlowLm::append_bos(FlowLmState& state) {
  if (weights_->bos_before_voice.empty()) return;
  std::copy(weights_->bos_before_voice.begin(), weights_->bos_before_voice.end(), x_.f32());
  append_rows("voice", 1, state);
}

// The first `rows` rows of x_ become the next positions.
void FlowLm::append_rows(std::string_view stage, size_t rows, FlowLmState& state) {
  if (probe_) probe_(stage, 0, rows_of(x_, rows));
  run_layers(rows, static_cast<bool>(probe_), state);
}

Status FlowLm::prefill_voice(View<const float, 2> latents, FlowLmState& state) {
  const size_t count = latents.extent(0), width = weights_->voice_width;
  if (latents.extent(1) != width)
    return fail(Code::kInvalidArgument, "voice frames of {} numbers, the model takes {}", latents.extent(1), width);
  SYRINX_TRY_VOID(check_room(state, count + (weights_->bos_before_voice.empty() ? 0 : 1)));
  append_bos(state);
  for (size_t first = 0; first < count; first += kPassRows) {
    const size_t rows = std::min(kPassRows, count - first);
    for (size_t n = 0; n < rows; ++n) std::copy_n(latents.row(first + n), width, voice_.f32(n));
    nn::linear(runner_, weights_->voice_proj.view, rows_of(voice_, rows), {}, rows_of(x_, rows));
    append_rows("voice", rows, state);
  }
  return {};
}

Status FlowLm::prefill_projected(View<const float, 2> projected, FlowLmState& state) {
  const size_t count = projected.extent(0), width = weights_->config.transformer.width;
  if (projected.extent(1) != width)
    return fail(Code::kInvalidArgument, "voice rows of {} numbers, the model takes {}", projected.extent(1), width);
  SYRINX_TRY_VOID(check_room(state, count + (weights_->bos_before_voice.empty() ? 0 : 1)));
  append_bos(state);
  for (size_t first = 0; first < count; first += kPassRows) {
    const size_t rows = std::min(kPassRows, count - first);
    for (size_t n = 0; n < rows; ++n) std::copy_n(projected.row(first + n), width, x_.f32(n));
    append_rows("voice", rows, state);
  }
  return {};
}

Status FlowLm::prefill_text(std::span<const int32_t> ids, FlowLmState& state) {
  const FlowLmWeights& w = *weights_;
  const size_t width = w.text_width();
  for (const int32_t id : ids) {
    if (id < 0 || static_cast<size_t>(id) >= w.config.text_bins)
      return fail(Code::kInvalidArgument, "token {} of a model that knows {}; its tokenizer is another model's", id,
                  w.config.text_bins);
  }
  SYRINX_TRY_VOID(check_room(state, ids.size()));
  nn::Plane& embedded = w.config.text_rank > 0 ? text_ : x_;
  for (size_t first = 0; first < ids.size(); first += kPassRows) {
    const size_t rows = std::min(kPassRows, ids.size() - first);
    for (size_t n = 0; n < rows; ++n)
      std::copy_n(w.text_table.data() + static_cast<size_t>(ids[first + n]) * width, width, embedded.f32(n));
    if (w.config.text_rank > 0) nn::linear(runner_, w.text_proj.view, rows_of(text_, rows), {}, rows_of(x_, rows));
    append_rows("text", rows, state);
  }
  return {};
}

FlowLm::Step FlowLm::step(const float* latent, FlowLmState& state) {
  const FlowLmWeights& w = *weights_;
  if (state.position >= state.capacity) {
    state.full = true;
    return {rows_of(condition_, 1), *logit_.f32()};
  }
  std::copy_n(latent != nullptr ? latent : w.bos.data(), w.latent, latent_.f32());
  nn::linear(runner_, w.input.view, rows_of(latent_, 1), {}, rows_of(x_, 1));
  run_layers(1, true, state);
  nn::Plane& normed = w.config.project_condition ? normed_ : condition_;
  kernels::layer_norm(rows_of(x_, 1), w.out_norm.affine(), kEpsilon, rows_of(normed, 1));
  if (w.config.project_condition) nn::linear(runner_, w.z_proj.view, rows_of(normed_, 1), {}, rows_of(condition_, 1));
  nn::linear(runner_, w.eos.view, rows_of(condition_, 1), {}, rows_of(logit_, 1));
  return {rows_of(condition_, 1), *logit_.f32()};
}

void FlowLm::run_layers(size_t rows, bool need_output, FlowLmState& state) {
  SYRINX_CHECK(state.layers == weights_->layers.size() && state.key_width == weights_->config.transformer.key_width(),
               "a state of {} layers of {}", state.layers, state.key_width);
  kernels::rotary_angles(weights_->theta, state.position, rows_of(cosines_, rows), rows_of(sines_, rows));
  for (size_t i = 0; i < weights_->layers.size(); ++i) {
    const FlowLmLayer& layer = weights_->layers[i];
    // A prompt's last layer leaves keys and values; what it would compute from them is read by nobody.
    const bool goes_on = need_output || i + 1 < weights_->layers.size();
    run_attention(layer, i, rows, goes_on, state);
    if (!goes_on) break;
    run_feed_forward(layer, rows);
    if (probe_) probe_("layer", i, rows_of(x_, rows));
  }
  state.position += rows;
}

// x += W_out attention(W_in norm1(x)), section 3.2.
void FlowLm::run_attention(const FlowLmLayer& layer, size_t index, size_t rows, bool need_output, FlowLmState& state) {
  const TransformerConfig& t = weights_->config.transformer;
  const size_t a = t.attention_width, k = t.key_width();
  const View<float, 2> keys = state.layer_keys(index), values = state.layer_values(index);
  each_row(runner_, rows, [&](size_t begin, size_t end) {
    kernels::layer_norm(rows_of(x_, begin, end), layer.norm1.affine(), kEpsilon, rows_of(normed_, begin, end));
  });
  nn::linear(runner_, layer.in_proj.view, rows_of(normed_, rows), {}, rows_of(qkv_, rows));
  each_row(runner_, rows, [&](size_t begin, size_t end) {
    // Queries and keys lie side by side, in heads of the same size.
    kernels::rotary(rows_of(cosines_, begin, end), rows_of(sines_, begin, end),
                    {qkv_.f32(begin), {end - begin, a + k}, {qkv_.stride(), 1}});
    for (size_t n = begin; n < end; ++n) {
      std::copy_n(qkv_.f32(n) + a, k, keys.row(state.position + n));
      std::copy_n(qkv_.f32(n) + a + k, k, values.row(state.position + n));
    }
  });
  if (!need_output) return;
  kernels::CacheAttentionInput input;
  input.q = {qkv_.f32(), {rows, a}, {qkv_.stride(), 1}};
  input.keys = keys;
  input.values = values;
  input.heads = t.heads;
  input.key_heads = t.key_heads;
  input.head_size = t.head_size();
  input.first_position = state.position;
  input.scale = 1.0f / std::sqrt(static_cast<float>(t.head_size()));
  const size_t floats = kernels::cache_attention_scratch_size(state.capacity);
  runner_.team().run([&](int member) {
    // Whole groups of heads, so that each key is read by one thread.
    const Range own = split_range(t.heads, member, runner_.team().size(), t.heads / t.key_heads);
    auto* const scratch = reinterpret_cast<float*>(runner_.scratch(member, floats * sizeof(float)).data());
    if (own.begin < own.end) kernels::cache_attention(input, own, {scratch, floats}, rows_of(attended_, rows));
  });
  nn::linear(runner_, layer.out_proj.view, rows_of(attended_, rows), rows_of(x_, rows), rows_of(x_, rows));
}

// x += W_2 gelu(W_1 norm2(x)), section 3.2.
void FlowLm::run_feed_forward(const FlowLmLayer& layer, size_t rows) {
  each_row(runner_, rows, [&](size_t begin, size_t end) {
    kernels::layer_norm(rows_of(x_, begin, end), layer.norm2.affine(), kEpsilon, rows_of(normed_, begin, end));
  });
  nn::linear(runner_, layer.linear1.view, rows_of(normed_, rows), {}, rows_of(hidden_, rows));
  const auto gelu = weights_->config.transformer.gelu_erf ? kernels::gelu_erf : kernels::gelu_tanh;
  each_row(runner_, rows, [&](size_t begin, size_t end) {
    for (size_t n = begin; n < end; ++n) {
      const std::span<float> row(hidden_.f32(n), hidden_.channels());
      gelu(row, row);
    }
  });
  nn::linear(runner_, layer.linear2.view, rows_of(hidden_, rows), rows_of(x_, rows), rows_of(x_, rows));
}

}  // namespace syrinx::pocket
