#include "models/whisper/decoder.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/activation.h"
#include "kernels/cache_attention.h"
#include "kernels/softmax.h"
#include "kernels/vector_math.h"
#include "nn/linear.h"
#include "nn/rows.h"

namespace syrinx::whisper {
using nn::columns_of;

namespace {

constexpr float kEpsilon = 1e-5f;
// Rows of one pass of a prompt: whole blocks of the matrix products, and scratch that does not grow with prompts.
constexpr size_t kPassRows = 126;
// Rows of logits that align() takes at once.
constexpr size_t kAlignRows = 8;
constexpr size_t kMaxStateBytes = size_t{4} << 30;

// In several sums, which the compiler keeps in a vector.
float dot(const float* a, const float* b, size_t count) {
  constexpr size_t kSums = 16;
  float sums[kSums] = {};
  size_t i = 0;
  for (; i + kSums <= count; i += kSums)
    for (size_t j = 0; j < kSums; ++j) sums[j] += a[i + j] * b[i + j];
  float total = 0;
  for (const float sum : sums) total += sum;
  for (; i < count; ++i) total += a[i] * b[i];
  return total;
}

// logits[at] - log of the sum of the first `count` exponentials; the logits are overwritten.
float log_probability(std::span<float> all, size_t count, size_t at) {
  const std::span<float> logits = all.first(count);
  const float most = *std::max_element(logits.begin(), logits.end()), value = all[at];
  for (float& logit : logits) logit -= most;
  kernels::exp_array(logits, logits);
  double sum = 0;
  for (const float part : logits) sum += part;
  return static_cast<float>(static_cast<double>(value) - most - std::log(sum));
}

}  // namespace

Result<DecoderState> DecoderState::make(const Model& model, size_t hypotheses) {
  const Config& c = model.config();
  if (hypotheses == 0 || hypotheses > kMaxHypotheses)
    return fail(Code::kLimitExceeded, "{} hypotheses at once, a decoder takes 1 to {}", hypotheses, kMaxHypotheses);
  DecoderState state;
  state.type = cache_type(model.precision());
  const size_t bytes = c.decoder_layers * hypotheses * c.text_positions * c.width * dtype_size(state.type);
  if (2 * bytes > kMaxStateBytes)
    return fail(Code::kLimitExceeded, "{} hypotheses need {} bytes, the limit is {}; ask for fewer", hypotheses,
                2 * bytes, kMaxStateBytes);
  state.layers = c.decoder_layers;
  state.heads = c.decoder_heads;
  state.head_size = c.width / c.decoder_heads;
  state.capacity = c.text_positions;
  state.keys = Buffer<std::byte>(bytes);
  state.values = Buffer<std::byte>(bytes);
  state.read.resize(hypotheses);
  return state;
}

void DecoderState::copy(size_t from, size_t to) {
  SYRINX_CHECK(from < hypotheses() && to < hypotheses(), "hypothesis {} to {} of {}", from, to, hypotheses());
  read[to] = read[from];
  if (from == to) return;
  const size_t size = dtype_size(type), used = read[from] * head_size * size;
  for (size_t layer = 0; layer < layers; ++layer) {
    for (size_t head = 0; head < heads; ++head) {
      const size_t source = offset(layer, from, head) * size, target = offset(layer, to, head) * size;
      std::copy_n(keys.data() + source, used, keys.data() + target);
      std::copy_n(values.data() + source, used, values.data() + target);
    }
  }
}

Decoder::Decoder(std::shared_ptr<const Model> model, ThreadTeam& team, size_t max_hypotheses)
    : model_(std::move(model)), runner_(team), crew_(team), max_step_rows_(max_hypotheses) {
  SYRINX_CHECK(max_hypotheses >= 1 && max_hypotheses <= kMaxHypotheses, "{} hypotheses", max_hypotheses);
  const Weights& w = model_->weights();
  const Config& c = w.config;
  const size_t head_size = c.width / c.decoder_heads, members = static_cast<size_t>(team.size());
  const auto prepare = [](nn::Plane& plane, size_t rows, size_t channels) {
    plane.prepare(rows, channels, kernels::Storage::kF32);
  };
  prepare(x_, kPassRows, c.width);
  prepare(normed_, std::max(kPassRows, members * max_hypotheses), c.width);
  prepare(qkv_, kPassRows, 3 * c.width);
  prepare(attended_, kPassRows, c.width);
  prepare(hidden_, kPassRows, c.decoder_hidden);
  prepare(logits_, std::max(max_hypotheses, kAlignRows), c.vocabulary);
  segments_.reserve(max_hypotheses);
  groups_.reserve(max_hypotheses);
  for (const LayerWeights& layer : w.decoder) {
    for (const auto* matrix : {&layer.qkv, &layer.out, &layer.cross_query, &layer.cross_out, &layer.ffn1, &layer.ffn2})
      nn::reserve_linear(runner_, matrix->view, kPassRows);
  }
  nn::reserve_linear(runner_, w.output.view, logits_.rows());
  const size_t floats =
      2 * kPassRows * head_size + kernels::cache_attention_scratch_size(std::max(c.text_positions, c.audio_positions));
  const size_t kept = c.audio_positions * head_size;  // keep_weights()
  for (int member = 0; member < team.size(); ++member) runner_.scratch(member, std::max(floats, kept) * sizeof(float));
}

View<float, 2> Decoder::rows(nn::Plane& plane, size_t first, size_t count) {
  return {plane.f32(first), {count, plane.channels()}, {plane.stride(), 1}};
}

void Decoder::embed(size_t row, int32_t token, size_t position) {
  const Weights& w = model_->weights();
  SYRINX_CHECK(token >= 0 && static_cast<size_t>(token) < w.config.vocabulary && position < w.config.text_positions,
               "token {} at position {}", token, position);
  float* const to = x_.f32(row);
  w.embedding.copy_row(static_cast<size_t>(token), to);
  const float* const at = w.decoder_positions.data() + position * w.config.width;
  for (size_t i = 0; i < w.config.width; ++i) to[i] += at[i];
}

View<const float, 2> Decoder::step(std::span<const DecoderInput> inputs, DecoderState& state) {
  SYRINX_CHECK(!inputs.empty() && inputs.size() <= max_step_rows_, "{} hypotheses in a step of {}", inputs.size(),
               max_step_rows_);
  segments_.clear();
  groups_.clear();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DecoderInput& input = inputs[i];
    SYRINX_CHECK(input.hypothesis < state.hypotheses() && input.audio != nullptr && input.audio->positions > 0,
                 "hypothesis {} of {}", input.hypothesis, state.hypotheses());
    embed(i, input.token, state.read[input.hypothesis]);
    segments_.push_back({.hypothesis = input.hypothesis, .first = i, .rows = 1});
    if (groups_.empty() || groups_.back().audio != input.audio) groups_.push_back({.audio = input.audio, .first = i});
    ++groups_.back().rows;
  }
  stepping_ = true;
  rows_ = inputs.size();
  runner_.team().run([&](int member) {
    nn::Crew::Seat seat = crew_.everyone(member);
    run_layers(seat, state);
  });
  for (const DecoderInput& input : inputs) ++state.read[input.hypothesis];
  return logits(0, rows_);
}

// One pass of a prompt: its rows are left in x_.
void Decoder::prefill_pass(size_t hypothesis, std::span<const int32_t> tokens, const AudioState& audio,
                           DecoderState& state) {
  for (size_t i = 0; i < tokens.size(); ++i) embed(i, tokens[i], state.read[hypothesis] + i);
  segments_.assign({Segment{.hypothesis = hypothesis, .first = 0, .rows = tokens.size()}});
  groups_.assign({Group{.audio = &audio, .first = 0, .rows = tokens.size()}});
  stepping_ = false;
  rows_ = tokens.size();
  runner_.team().run([&](int member) {
    nn::Crew::Seat seat = crew_.everyone(member);
    run_layers(seat, state);
  });
  state.read[hypothesis] += tokens.size();
}

std::span<const float> Decoder::prefill(size_t hypothesis, std::span<const int32_t> tokens, const AudioState& audio,
                                        DecoderState& state) {
  SYRINX_CHECK(!tokens.empty() && hypothesis < state.hypotheses() && tokens.size() <= state.room(hypothesis) &&
                   audio.positions > 0,
               "{} tokens for hypothesis {}", tokens.size(), hypothesis);
  for (size_t first = 0; first < tokens.size(); first += kPassRows)
    prefill_pass(hypothesis, tokens.subspan(first, std::min(kPassRows, tokens.size() - first)), audio, state);
  return {logits(rows_ - 1, 1).row(0), model_->config().vocabulary};
}

void Decoder::align(size_t hypothesis, std::span<const int32_t> tokens, const AudioState& audio,
                    std::span<const AlignmentHead> heads, size_t text_tokens, DecoderState& state,
                    std::vector<float>& weights, std::vector<float>& log_probabilities) {
  const size_t vocabulary = model_->config().vocabulary;
  SYRINX_CHECK(!tokens.empty() && hypothesis < state.hypotheses() && tokens.size() <= state.room(hypothesis) &&
                   audio.positions > 0 && text_tokens >= 1 && text_tokens <= vocabulary,
               "{} tokens for hypothesis {}, {} of text", tokens.size(), hypothesis, text_tokens);
  weights.resize(heads.size() * tokens.size() * audio.positions);
  log_probabilities.resize(tokens.size() - 1);
  for (size_t first = 0; first < tokens.size(); first += kPassRows) {
    kept_ = {.heads = heads,
             .weights = weights.data() + first * audio.positions,
             .head_stride = tokens.size() * audio.positions};
    prefill_pass(hypothesis, tokens.subspan(first, std::min(kPassRows, tokens.size() - first)), audio, state);
    for (size_t row = 0; row < rows_ && first + row < log_probabilities.size(); row += kAlignRows) {
      const size_t count = std::min({kAlignRows, rows_ - row, log_probabilities.size() - first - row});
      logits(row, count);
      runner_.split(count, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          const size_t at = first + row + i;
          log_probabilities[at] =
              log_probability({logits_.f32(i), vocabulary}, text_tokens, static_cast<size_t>(tokens[at + 1]));
        }
      });
    }
  }
  kept_ = {};
}

// The last norm and the output of some rows of x_.
View<const float, 2> Decoder::logits(size_t first, size_t count) {
  const Weights& w = model_->weights();
  kernels::layer_norm(rows(x_, first, count), w.decoder_norm.affine(), kEpsilon, rows(normed_, 0, count));
  runner_.team().run([&](int member) {
    const nn::Part part{.member = member, .rank = member, .size = runner_.team().size()};
    nn::stream_linear_part(runner_, part, w.output.view, rows(normed_, 0, count), {}, rows(logits_, 0, count));
  });
  return rows(logits_, 0, count);
}

void Decoder::run_layers(nn::Crew::Seat& seat, DecoderState& state) {
  for (size_t i = 0; i < model_->weights().decoder.size(); ++i) run_layer(seat, i, state);
}

// x += W_out self(W_qkv norm(x)); x += W_out cross(W_q norm(x)); x += W_2 gelu(W_1 norm(x))
void Decoder::run_layer(nn::Crew::Seat& seat, size_t index, DecoderState& state) {
  using nn::Part;
  const LayerWeights& layer = model_->weights().decoder[index];
  const View<float, 2> x = rows(x_, 0, rows_);
  const auto linear = [&](const Part& part, const kernels::OwnedMatrix& matrix, View<const float, 2> from,
                          View<const float, 2> addend, View<float, 2> to) {
    return stepping_ ? nn::stream_linear_part(runner_, part, matrix.view, from, addend, to)
                     : nn::linear_part(runner_, part, matrix.view, from, addend, to);
  };
  norm(seat, layer.norm);
  seat.stage([&](const Part& part) { linear(part, layer.qkv, normed(part, layer.norm), {}, rows(qkv_, 0, rows_)); });
  seat.stage([&](const Part& part) { attend_self(part, index, state); });
  seat.stage([&](const Part& part) { linear(part, layer.out, rows(attended_, 0, rows_), x, x); });
  norm(seat, layer.cross_norm);
  seat.stage([&](const Part& part) {
    const View<float, 2> queries = columns_of(qkv_, 0, rows_, 0, model_->config().width);
    linear(part, layer.cross_query, normed(part, layer.cross_norm), {}, queries);
  });
  seat.stage([&](const Part& part) { attend_cross(part, index); });
  seat.stage([&](const Part& part) { linear(part, layer.cross_out, rows(attended_, 0, rows_), x, x); });
  norm(seat, layer.ffn_norm);
  seat.stage([&](const Part& part) {
    const nn::Share own = linear(part, layer.ffn1, normed(part, layer.ffn_norm), {}, rows(hidden_, 0, rows_));
    for (size_t n = own.rows.begin; n < own.rows.end; ++n) {
      const std::span<float> columns(hidden_.f32(n) + own.columns.begin, own.columns.end - own.columns.begin);
      kernels::gelu_erf(columns, columns);
    }
  });
  seat.stage([&](const Part& part) { linear(part, layer.ffn2, rows(hidden_, 0, rows_), x, x); });
}

// The few rows of a step are cheaper normed by every member for itself, in normed(), than once and waited for.
void Decoder::norm(nn::Crew::Seat& seat, const NormWeights& norm) {
  if (stepping_) return;
  seat.stage([&](const nn::Part& part) {
    const Range own = part.split(rows_);
    const size_t count = own.end - own.begin;
    kernels::layer_norm(rows(x_, own.begin, count), norm.affine(), kEpsilon, rows(normed_, own.begin, count));
  });
}

View<const float, 2> Decoder::normed(const nn::Part& part, const NormWeights& norm) {
  if (!stepping_) return rows(normed_, 0, rows_);
  const View<float, 2> own = rows(normed_, static_cast<size_t>(part.member) * max_step_rows_, rows_);
  kernels::layer_norm(rows(x_, 0, rows_), norm.affine(), kEpsilon, own);
  return own;
}

void Decoder::attend_self(const nn::Part& part, size_t layer, DecoderState& state) {
  const Range units = part.split(segments_.size() * state.heads);
  for (size_t unit = units.begin; unit < units.end; ++unit) {
    const Segment& segment = segments_[unit % segments_.size()];
    if (state.type == DType::kF32) {
      attend_self_head<float>(part, segment, layer, unit / segments_.size(), state);
    } else {
      attend_self_head<uint16_t>(part, segment, layer, unit / segments_.size(), state);
    }
  }
}

// Keeps the new keys and values of one head, then attends to all so far.
template <class T>
void Decoder::attend_self_head(const nn::Part& part, const Segment& segment, size_t layer, size_t head,
                               DecoderState& state) {
  const size_t width = model_->config().width, size = state.head_size, position = state.read[segment.hypothesis];
  const View<T, 2> keys = state.head_keys<T>(layer, segment.hypothesis, head);
  const View<T, 2> values = state.head_values<T>(layer, segment.hypothesis, head);
  const auto columns = [&](size_t first) {
    return columns_of(qkv_, segment.first, segment.rows, first + head * size, size);
  };
  nn::copy_rows(columns(width), {keys.row(position), {segment.rows, size}});
  nn::copy_rows(columns(2 * width), {values.row(position), {segment.rows, size}});
  kernels::CacheAttention<T> input;
  input.q = columns(0);
  input.keys = keys;
  input.values = values;
  input.head_size = size;
  input.first_position = position;
  input.scale = 1.0f / std::sqrt(static_cast<float>(size));
  const size_t floats = kernels::cache_attention_scratch_size(state.capacity);
  auto* const scratch = reinterpret_cast<float*>(runner_.scratch(part.member, floats * sizeof(float)).data());
  kernels::cache_attention(input, {0, 1}, {scratch, floats},
                           columns_of(attended_, segment.first, segment.rows, head * size, size));
}

void Decoder::attend_cross(const nn::Part& part, size_t layer) {
  const size_t heads = model_->config().decoder_heads;
  const Range units = part.split(groups_.size() * heads);
  for (size_t unit = units.begin; unit < units.end; ++unit) {
    const Group& group = groups_[unit / heads];
    if (group.audio->type == DType::kF32) {
      attend_cross_head<float>(part, group, layer, unit % heads);
    } else {
      attend_cross_head<uint16_t>(part, group, layer, unit % heads);
    }
  }
}

// All rows of the group look at the whole window.  They go through as query heads that share a key head at the last
// position, so that keys and values are read once for several.
template <class T>
void Decoder::attend_cross_head(const nn::Part& part, const Group& group, size_t layer, size_t head) {
  const AudioState& audio = *group.audio;
  const size_t size = audio.head_size, count = group.rows;
  const size_t attention = kernels::cache_attention_scratch_size(audio.positions);
  const size_t floats = 2 * count * size + attention;
  auto* const queries = reinterpret_cast<float*>(runner_.scratch(part.member, floats * sizeof(float)).data());
  float* const results = queries + count * size;
  for (size_t n = 0; n < count; ++n) std::copy_n(qkv_.f32(group.first + n) + head * size, size, queries + n * size);
  kernels::CacheAttention<T> input;
  input.q = {queries, {1, count * size}};
  input.keys = audio.head_keys<T>(layer, head);
  input.values = audio.head_values<T>(layer, head);
  input.heads = count;
  input.key_heads = 1;
  input.head_size = size;
  input.first_position = audio.positions - 1;
  input.scale = 1.0f / std::sqrt(static_cast<float>(size));
  kernels::cache_attention(input, {0, count}, {results + count * size, attention}, {results, {1, count * size}});
  for (size_t n = 0; n < count; ++n)
    std::copy_n(results + n * size, size, attended_.f32(group.first + n) + head * size);
  keep_weights<T>(part, group, layer, head);
}

// What align() asked for of this head.
template <class T>
void Decoder::keep_weights(const nn::Part& part, const Group& group, size_t layer, size_t head) {
  for (size_t i = 0; i < kept_.heads.size(); ++i) {
    if (kept_.heads[i].layer != layer || kept_.heads[i].head != head) continue;
    const AudioState& audio = *group.audio;
    const size_t size = audio.head_size, positions = audio.positions;
    auto* const keys = reinterpret_cast<float*>(runner_.scratch(part.member, positions * size * sizeof(float)).data());
    nn::copy_rows(audio.head_keys<T>(layer, head), View<float, 2>(keys, {positions, size}));
    for (size_t n = 0; n < group.rows; ++n) {
      const float* const query = qkv_.f32(group.first + n) + head * size;
      float* const row = kept_.weights + i * kept_.head_stride + n * positions;
      for (size_t p = 0; p < positions; ++p) row[p] = dot(query, keys + p * size, size);
      const View<float, 2> view(row, {1, positions});
      kernels::softmax(view, 1.0f / std::sqrt(static_cast<float>(size)), view);
    }
  }
}

}  // namespace syrinx::whisper
