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
      ahead_(weights->config.style == ContextStyle::kRegular ? static_cast<size_t>(context.right) : 0),
      subsampler_(*weights, runner, max_streams, chunk_mels(weights->config, context) + compat_mels(weights->config),
                  true),
      positions_(*weights, static_cast<size_t>(context.left) + chunk_ + kBlockReach, chunk_ + kBlockReach, runner),
      counts_(max_streams),
      positions_after_(max_streams),
      plans_(ahead_ == 0 ? 1 : weights->config.layers) {
  SYRINX_CHECK(check_streaming(weights->config, context).has_value() && max_streams > 0, "context {} {}, {} streams",
               context.left, context.right, max_streams);
  // Frames that the maker's steps drop go through the subsampling too.
  const size_t rows = max_streams * (chunk_ + kCompatDrop + 1);
  prepare(rows);
  subsampled_.prepare(rows, config().width, kernels::Storage::kF32);
  if (ahead_ > 0)
    for (nn::Plane* plane : {&queries_, &released_}) plane->prepare(rows, config().width, kernels::Storage::kF32);
  pieces_.reserve(max_streams);
  for (Plan& plan : plans_) {
    plan.segments.reserve(max_streams);
    plan.segment_of.reserve(rows);
    plan.sees.reserve(rows);
  }
  const size_t keys = static_cast<size_t>(context.left) + chunk_ + ahead_;
  const size_t bytes = kernels::relative_attention_scratch_size(keys) * sizeof(float);
  for (int member = 0; member < runner_.team().size(); ++member) runner_.scratch(member, bytes);
}

// In the maker's steps, the last frames of features stand before the new ones, and each chunk is a sound of its own.
Subsampler::Piece StreamEncoder::piece_of(const Input& input) {
  EncoderState& state = *input.state;
  const size_t count = input.mels.extent(0), mels = config().mels, again = compat_mels(config());
  const size_t wanted = state.started_ ? chunk_mels(config(), context_) : first_chunk_mels(config(), context_);
  SYRINX_CHECK(state.chunk_ == chunk_ && state.ring_ == chunk_ + ahead_ + static_cast<size_t>(context_.left),
               "a state made for chunks of {}", state.chunk_);
  SYRINX_CHECK(count == wanted || (input.last && count < wanted), "{} features, a chunk has {}", count, wanted);
  SYRINX_CHECK(state.end_ == EncoderState::kNoEnd || (input.last && count == 0), "{} features behind the end", count);
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
  for (Plan& plan : plans_) {
    plan.rows = plan.given = 0;
    plan.segments.clear();
    plan.segment_of.clear();
    plan.sees.clear();
  }
  size_t from = 0;
  for (size_t n = 0; n < inputs.size(); ++n) {
    EncoderState& state = *inputs[n].state;
    const bool again = state.mode_ == StreamMode::kNemoCompat && state.started_ && counts_[n] > 0;
    const size_t drop = again ? std::min(kCompatDrop, counts_[n]) : 0, count = counts_[n] - drop;
    SYRINX_CHECK(count <= chunk_, "{} frames of a chunk of {}", count, chunk_);
    const size_t first = plans_.front().rows, first_given = plans_.back().given;
    for (size_t t = 0; t < count; ++t) std::copy_n(subsampled_.f32(from + drop + t), config().width, x_.f32(first + t));
    from += counts_[n];
    if (inputs[n].last) state.end_ = std::min(state.end_, state.position_ + count);
    positions_after_[n] = state.position_ + (inputs[n].last ? chunk_ : count);
    plan(state, positions_after_[n]);
    outputs[n] = {first_given, plans_.back().given - first_given};
  }
  const bool idle = std::ranges::all_of(plans_, [](const Plan& plan) { return plan.segments.empty(); });
  if (!idle) run(plans_.front().rows);
  for (size_t n = 0; n < inputs.size(); ++n) {
    EncoderState& state = *inputs[n].state;
    finish_state(state, positions_after_[n]);
    if (state.mode_ == StreamMode::kNemoCompat) {
      const size_t mels = config().mels, moved = inputs[n].mels.extent(0) * mels;
      std::memmove(state.mels_.data(), state.mels_.data() + moved, compat_mels(config()) * mels * sizeof(float));
    }
    state.started_ = true;
  }
  return {x_.f32(), {plans_.back().given, config().width}, {x_.stride(), 1}};
}

// Plans the rows that each block takes and gives for a stream that has been read up to `position` behind this step.
void StreamEncoder::plan(EncoderState& state, size_t position) {
  for (size_t block = 0; block < plans_.size(); ++block) {
    Plan& plan = plans_[block];
    Segment own{.state = &state, .first = plan.rows, .first_given = plan.given};
    own.taken_before = state.reached(state.position_, block);
    own.given_before = state.reached(state.position_, block + 1);
    const size_t taken = state.reached(position, block);
    own.rows = taken - own.taken_before;
    own.given = state.reached(position, block + 1) - own.given_before;
    if (own.rows + own.given == 0) continue;
    const size_t origin = own.given_before - std::min(own.given_before, state.left_);  // the first key there is
    for (size_t frame = own.given_before; frame < own.given_before + own.given; ++frame) {
      const bool whole = ahead_ == 0;  // a chunk sees all of itself and of what is kept
      const size_t begin = whole ? origin : frame - std::min(frame, state.left_);
      const size_t end = whole ? taken : std::min(frame + ahead_ + 1, taken);
      plan.sees.push_back({static_cast<uint32_t>(begin - origin), static_cast<uint32_t>(end - origin)});
      plan.segment_of.push_back(plan.segments.size());
    }
    plan.rows += own.rows;
    plan.given += own.given;
    plan.segments.push_back(own);
  }
}

// The rows' keys, values and gates are in the caches; moves on behind them.
void StreamEncoder::finish_state(EncoderState& state, size_t position) const {
  const size_t held = state.kernel_ - 1;
  for (size_t layer = 0; layer < state.layers_; ++layer) {
    size_t& first = state.gated_first_[layer];
    first += state.reached(position, layer + 1) - state.reached(state.position_, layer + 1);
    if (first + held + chunk_ <= state.gated_capacity_) continue;
    float* const block = state.gated_.data() + layer * state.gated_capacity_ * state.width_;
    std::memmove(block, block + first * state.width_, held * state.width_ * sizeof(float));
    first = 0;
  }
  state.position_ = position;
}

// Where blocks see ahead, each gives other rows than it takes.
void StreamEncoder::run_layer(nn::Crew::Seat& seat, size_t index) {
  if (ahead_ == 0) return EncoderLayers::run_layer(seat, index);
  const Plan& plan = plan_of(index);
  if (plan.segments.empty()) return;
  if (plan.rows > 0) run_before_attention(seat, index);
  seat.stage([&](const nn::Part& part) {
    const Range own = part.split(plan.segments.size());
    for (size_t n = own.begin; n < own.end; ++n) release(plan.segments[n], index);
  });
  seat.stage([&](const nn::Part& part) {
    attend(part, index);
    const Range own = part.split(plan.given);
    for (size_t row = own.begin; row < own.end; ++row) std::copy_n(released_.f32(row), config().width, x_.f32(row));
    if (part.rank == 0) rows_ = plan.given;
  });
  if (plan.given > 0) run_behind_attention(seat, index);
}

// The rows that go on, the held ones first, into released_ and queries_; the others are held.
void StreamEncoder::release(const Segment& segment, size_t layer) {
  const size_t d = config().width, held = segment.taken_before - segment.given_before;
  float* const store = segment.state->held_.data() + layer * ahead_ * 2 * d;
  for (size_t t = 0; t < segment.given; ++t) {
    const bool old = t < held;
    const float* const x = old ? store + t * 2 * d : x_.f32(segment.first + t - held);
    const float* const q = old ? x + d : qkv_.f32(segment.first + t - held);
    std::copy_n(x, d, released_.f32(segment.first_given + t));
    std::copy_n(q, d, queries_.f32(segment.first_given + t));
  }
  const size_t gone = std::min(held, segment.given);
  std::memmove(store, store + gone * 2 * d, (held - gone) * 2 * d * sizeof(float));
  for (size_t t = std::max(held, segment.given); t < held + segment.rows; ++t) {
    float* const to = store + (t - segment.given) * 2 * d;
    std::copy_n(x_.f32(segment.first + t - held), d, to);
    std::copy_n(qkv_.f32(segment.first + t - held), d, to + d);
  }
}

// Members share the heads of all streams, so that nobody reads what another is writing.
void StreamEncoder::attend(const nn::Part& part, size_t layer) {
  const size_t heads = config().heads;
  const std::vector<Segment>& segments = plan_of(layer).segments;
  const Range units = part.split(segments.size() * heads);
  for (size_t unit = units.begin; unit < units.end; ++unit)
    attend_head(part, segments[unit / heads], layer, unit % heads);
}

void StreamEncoder::attend_head(const nn::Part& part, const Segment& segment, size_t layer, size_t head) {
  EncoderState& state = *segment.state;
  const size_t d = config().width, k = config().head_size(), column = head * k, ring = state.ring_;
  const size_t before = std::min(segment.given_before, state.left_), place = segment.taken_before % ring;
  float* const keys = state.keys_.data() + layer * d * state.key_stride_;
  float* const values = state.values_.data() + layer * ring * d;
  const View<const float, 2> rows(qkv_.f32(segment.first), {segment.rows, 3 * d}, {qkv_.stride(), 1});
  if (segment.rows > 0)
    kernels::transpose_rows({rows.data() + d + column, {segment.rows, k}, {rows.stride(0), 1}}, place, true,
                            {keys + column * state.key_stride_, {k, ring}, {state.key_stride_, 1}});
  for (size_t t = 0; t < segment.rows; ++t)
    std::copy_n(rows.row(t) + 2 * d + column, k, values + (place + t) % ring * d + column);
  if (segment.given == 0) return;
  nn::Plane& queries = ahead_ == 0 ? qkv_ : queries_;
  kernels::RelativeAttention in;
  in.q = {queries.f32(segment.first_given), {segment.given, d}, {queries.stride(), 1}};
  in.keys = {keys, {d, ring}, {state.key_stride_, 1}};
  in.values = {values, {ring, d}, {d, 1}};
  in.positions = positions_.positions(layer);
  in.constants = positions_.constants(layer);
  in.sees = std::span(plan_of(layer).sees).subspan(segment.first_given, segment.given);
  in.first_query = static_cast<ptrdiff_t>(before);
  in.first_offset = static_cast<ptrdiff_t>(positions_.ahead());
  in.ring = ring;
  in.ring_first = (segment.given_before - before) % ring;
  in.head_size = k;
  in.scale = 1.0f / std::sqrt(static_cast<float>(k));
  const size_t floats = kernels::relative_attention_scratch_size(ring);
  auto* const scratch = reinterpret_cast<float*>(runner_.scratch(part.member, floats * sizeof(float)).data());
  kernels::relative_attention(in, head, head + 1, {scratch, floats},
                              rows_of(attended_, {segment.first_given, segment.first_given + segment.given}));
}

float* StreamEncoder::gated_row(size_t row, size_t layer) {
  const Plan& plan = plan_of(layer);
  const Segment& segment = plan.segments[plan.segment_of[row]];
  EncoderState& state = *segment.state;
  const size_t place = state.gated_first_[layer] + state.kernel_ - 1 + (row - segment.first_given);
  return state.gated_.data() + (layer * state.gated_capacity_ + place) * state.width_;
}

size_t StreamEncoder::prompt_of(size_t row) const {
  const Plan& plan = plans_.back();
  return plan.segments[plan.segment_of[row]].state->prompt_;
}

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
