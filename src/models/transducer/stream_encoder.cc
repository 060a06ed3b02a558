#include "models/transducer/stream_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "kernels/depthwise_rows.h"
#include "kernels/relative_attention.h"

namespace syrinx::transducer {
namespace {

// Queries that attention takes together see keys of each other.
constexpr size_t kBlockReach = 4;

}  // namespace

StreamEncoder::StreamEncoder(const std::shared_ptr<const EncoderWeights>& weights, nn::Runner& runner,
                             AttentionContext context, size_t max_streams)
    : EncoderLayers(weights, runner, true),
      context_(context),
      max_streams_(max_streams),
      chunk_(static_cast<size_t>(context.right) + 1),
      subsampler_(*weights, runner, max_streams, chunk_mels(weights->config, context) + compat_mels(weights->config),
                  true),
      positions_(*weights, static_cast<size_t>(context.left) + chunk_ + kBlockReach, chunk_ + kBlockReach, runner),
      counts_(max_streams) {
  SYRINX_CHECK(check_streaming(weights->config, context).has_value() && max_streams > 0, "context {} {}, {} streams",
               context.left, context.right, max_streams);
  // What the maker's steps drop comes through the subsampling too.
  const size_t rows = max_streams * (chunk_ + kCompatDrop + 1);
  prepare(rows);
  subsampled_.prepare(rows, config().width, kernels::Storage::kF32);
  pieces_.reserve(max_streams);
  segments_.reserve(max_streams);
  row_segment_.reserve(rows);
  sees_.reserve(rows);
  const size_t keys = static_cast<size_t>(context.left) + chunk_;
  const size_t bytes = kernels::relative_attention_scratch_size(keys) * sizeof(float);
  for (int member = 0; member < runner_.team().size(); ++member) runner_.scratch(member, bytes);
}

// In the maker's steps, the last frames of features stand before the new ones, and each chunk is a sound of its own.
Subsampler::Piece StreamEncoder::piece_of(const Input& input) {
  EncoderState& state = *input.state;
  const size_t count = input.mels.extent(0), mels = config().mels, again = compat_mels(config());
  const size_t wanted = state.started_ ? chunk_mels(config(), context_) : first_chunk_mels(config(), context_);
  SYRINX_CHECK(state.chunk_ == chunk_ && state.ring_ == chunk_ + static_cast<size_t>(context_.left),
               "a state made for chunks of {}", state.chunk_);
  SYRINX_CHECK(count == wanted || (input.last && count < wanted), "{} features, a chunk has {}", count, wanted);
  if (state.mode_ == StreamMode::kExact) return {&state.subsampling_, input.mels, input.last};
  for (size_t t = 0; t < count; ++t) std::copy_n(input.mels.row(t), mels, state.mels_.data() + (again + t) * mels);
  const size_t before = state.started_ && count > 0 ? again : 0;
  state.subsampling_.reset();
  return {&state.subsampling_, {state.mels_.data() + (again - before) * mels, {before + count, mels}}, true};
}

View<const float, 2> StreamEncoder::step(std::span<const Input> inputs, std::span<Output> outputs) {
  SYRINX_CHECK(inputs.size() <= max_streams_ && outputs.size() >= inputs.size(), "{} streams, made for {}",
               inputs.size(), max_streams_);
  pieces_.clear();
  for (const Input& input : inputs) pieces_.push_back(piece_of(input));
  const View<float, 2> subsampled(subsampled_.f32(), {subsampled_.rows(), config().width}, {subsampled_.stride(), 1});
  subsampler_.run(pieces_, counts_, subsampled);
  segments_.clear();
  row_segment_.clear();
  sees_.clear();
  size_t rows = 0, from = 0;
  for (size_t n = 0; n < inputs.size(); ++n) {
    EncoderState& state = *inputs[n].state;
    const bool again = state.mode_ == StreamMode::kNemoCompat && state.started_ && counts_[n] > 0;
    const size_t drop = again ? std::min(kCompatDrop, counts_[n]) : 0, count = counts_[n] - drop;
    SYRINX_CHECK(count <= chunk_, "{} frames of a chunk of {}", count, chunk_);
    for (size_t t = 0; t < count; ++t) std::copy_n(subsampled_.f32(from + drop + t), config().width, x_.f32(rows + t));
    from += counts_[n];
    outputs[n] = {rows, count};
    const Segment segment{&state, rows, count};
    rows += count;
    if (count == 0) continue;
    segments_.push_back(segment);
    const auto keys = static_cast<uint32_t>(std::min(state.position_, state.left_) + count);
    for (size_t t = 0; t < count; ++t) {
      row_segment_.push_back(segment);
      sees_.push_back({0, keys});
    }
  }
  if (rows > 0) run(rows);
  for (size_t n = 0; n < inputs.size(); ++n) {
    finish_state(*inputs[n].state, outputs[n].rows);
    EncoderState& state = *inputs[n].state;
    if (state.mode_ == StreamMode::kNemoCompat) {
      const size_t mels = config().mels, moved = inputs[n].mels.extent(0) * mels;
      std::memmove(state.mels_.data(), state.mels_.data() + moved, compat_mels(config()) * mels * sizeof(float));
    }
    state.started_ = true;
  }
  return {x_.f32(), {rows, config().width}, {x_.stride(), 1}};
}

// The rows' keys, values and gates are in the caches; moves on behind them.
void StreamEncoder::finish_state(EncoderState& state, size_t rows) const {
  const size_t held = state.kernel_ - 1;
  state.position_ += rows;
  state.gated_first_ += rows;
  if (state.gated_first_ + held + chunk_ <= state.gated_capacity_) return;
  for (size_t layer = 0; layer < state.layers_; ++layer) {
    float* const block = state.gated_.data() + layer * state.gated_capacity_ * state.width_;
    std::memmove(block, block + state.gated_first_ * state.width_, held * state.width_ * sizeof(float));
  }
  state.gated_first_ = 0;
}

// Members share the heads of all streams, so that nobody reads what another is writing.
void StreamEncoder::attend(const nn::Part& part, size_t layer) {
  const size_t heads = config().heads;
  const Range units = part.split(segments_.size() * heads);
  for (size_t unit = units.begin; unit < units.end; ++unit)
    attend_head(part, segments_[unit / heads], layer, unit % heads);
}

void StreamEncoder::attend_head(const nn::Part& part, const Segment& segment, size_t layer, size_t head) {
  EncoderState& state = *segment.state;
  const size_t d = config().width, k = config().head_size(), column = head * k, ring = state.ring_;
  const size_t before = std::min(state.position_, state.left_), place = state.position_ % ring;
  float* const keys = state.keys_.data() + layer * d * state.key_stride_;
  float* const values = state.values_.data() + layer * ring * d;
  const View<const float, 2> rows(qkv_.f32(segment.first), {segment.rows, 3 * d}, {qkv_.stride(), 1});
  kernels::transpose_rows({rows.data() + d + column, {segment.rows, k}, {rows.stride(0), 1}}, place, true,
                          {keys + column * state.key_stride_, {k, ring}, {state.key_stride_, 1}});
  for (size_t t = 0; t < segment.rows; ++t)
    std::copy_n(rows.row(t) + 2 * d + column, k, values + (place + t) % ring * d + column);
  kernels::RelativeAttention in;
  in.q = {rows.data(), {segment.rows, d}, {rows.stride(0), 1}};
  in.keys = {keys, {d, ring}, {state.key_stride_, 1}};
  in.values = {values, {ring, d}, {d, 1}};
  in.positions = positions_.positions(layer);
  in.constants = positions_.constants(layer);
  in.sees = std::span(sees_).subspan(segment.first, segment.rows);
  in.first_query = static_cast<ptrdiff_t>(before);
  in.first_offset = static_cast<ptrdiff_t>(positions_.ahead());
  in.ring = ring;
  in.ring_first = (state.position_ - before) % ring;
  in.head_size = k;
  in.scale = 1.0f / std::sqrt(static_cast<float>(k));
  const size_t floats = kernels::relative_attention_scratch_size(ring);
  auto* const scratch = reinterpret_cast<float*>(runner_.scratch(part.member, floats * sizeof(float)).data());
  kernels::relative_attention(in, head, head + 1, {scratch, floats},
                              rows_of(attended_, {segment.first, segment.first + segment.rows}));
}

float* StreamEncoder::gated_row(size_t row, size_t layer) {
  const Segment& segment = row_segment_[row];
  EncoderState& state = *segment.state;
  const size_t at = layer * state.gated_capacity_ + state.gated_first_ + state.kernel_ - 1 + (row - segment.first);
  return state.gated_.data() + at * state.width_;
}

size_t StreamEncoder::prompt_of(size_t row) const { return row_segment_[row].state->prompt_; }

void StreamEncoder::convolve(const nn::Part& part, size_t index) {
  const EncoderLayer& layer = weights().layers[index];
  kernels::DepthwiseRows conv;
  conv.weight = layer.depthwise.data();
  conv.bias = layer.depthwise_bias.data();
  conv.taps = config().kernel;
  conv.activation = config().layer_norm ? kernels::RowsActivation::kNone : kernels::RowsActivation::kSilu;
  const Range own = part.split(rows_);
  for (size_t row = own.begin; row < own.end; ++row) {
    const float* const newest = gated_row(row, index);
    const size_t d = config().width, held = config().kernel - 1;
    const View<float, 2> to = rows_of(mixed_, {row, row + 1});
    kernels::depthwise_rows(conv, {newest - held * d, {held + 1, d}}, 0, 1, to);
    if (config().layer_norm) finish_convolution(layer, to);
  }
}

}  // namespace syrinx::transducer
