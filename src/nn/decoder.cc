#include "nn/decoder.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/activation.h"
#include "kernels/cache_attention.h"
#include "kernels/narrow_gemm.h"
#include "kernels/rms_norm.h"
#include "kernels/rotary.h"
#include "kernels/swiglu.h"
#include "nn/linear.h"
#include "nn/rows.h"

namespace syrinx::nn {
namespace {

View<const float, 2> some_rows(View<const float, 2> rows, size_t first, size_t count) {
  if (rows.data() == nullptr) return {};
  return {rows.row(first), {count, rows.extent(1)}, {rows.stride(0), 1}};
}
View<float, 2> some_rows(View<float, 2> rows, size_t first, size_t count) {
  return {rows.row(first), {count, rows.extent(1)}, {rows.stride(0), 1}};
}

}  // namespace

Decoder::Decoder(const DecoderWeights& weights, Runner& runner, const Limits& limits)
    : config_(weights.shape), runner_(runner), weights_(&weights) {
  const DecoderConfig& c = config_;
  const auto prepare_rows = [](Plane& plane, size_t rows, size_t channels) {
    plane.prepare(rows, channels, kernels::Storage::kF32);
  };
  const auto prepare = [&](Plane& plane, size_t channels) { prepare_rows(plane, limits.rows, channels); };
  norm_.prepare(limits.rows, c.width, runner.team().size());
  prepare(x_, c.width);
  prepare(qkv_, c.query_width() + 2 * c.key_width());
  prepare(attended_, c.query_width());
  if (c.mlp == Mlp::kSwiGlu) {
    prepare(hidden_, 2 * round_up(c.hidden, kPanelColumns));
    prepare(gated_, c.hidden);
  } else {
    prepare(hidden_, c.hidden);
  }
  if (c.layer_scale) prepare(scaled_, c.width);
  for (Plane* plane : {&cosines_, &sines_}) prepare(*plane, weights.theta.size());
  streams_.reserve(limits.streams);
  groups_.reserve(limits.streams);
  if (c.stream_gain) gains_.resize(limits.rows);
  const size_t pieces = limits.streams * (c.segment == 0 ? 1 : limits.positions / c.segment + 2);
  pieces_.reserve(pieces);
  if (c.segment > 0) {
    prepare_rows(parts_, pieces, c.query_width());
    prepare_rows(log_sums_, pieces, c.heads);
  }
  reserve(weights, limits);
}

void Decoder::reserve(const DecoderWeights& weights, const Limits& limits) {
  for (const DecoderBlock& block : weights.layers) {
    for (const auto* matrix : {&block.in, &block.out, &block.up, &block.down})
      reserve_linear(runner_, matrix->view, limits.rows);
    if (!block.cross) continue;
    for (const auto* matrix : {&block.cross->query, &block.cross->out})
      reserve_linear(runner_, matrix->view, limits.rows);
  }
  const size_t cross = limits.cross_positions == 0 ? 0
                                                   : 2 * limits.rows * config_.head_size +
                                                         kernels::cache_attention_scratch_size(limits.cross_positions);
  const size_t floats = std::max(cross, kernels::cache_attention_scratch_size(limits.positions));
  for (int member = 0; member < runner_.team().size(); ++member) runner_.scratch(member, floats * sizeof(float));
}

View<float, 2> Decoder::input(size_t rows) {
  SYRINX_CHECK(rows <= x_.rows(), "{} rows in a pass of {}", rows, x_.rows());
  return rows_of(x_, rows);
}

void Decoder::check_stream(const Rows& stream) const {
  const KvCache& cache = *stream.cache;
  SYRINX_CHECK(cache.layers == config_.layers && cache.key_heads == config_.key_heads &&
                   cache.head_size == config_.head_size && cache.type == config_.cache &&
                   (cache.window == 0 || cache.window == config_.window),
               "a cache of {} layers of {} x {} in {}, window {}", cache.layers, cache.key_heads, cache.head_size,
               dtype_name(cache.type), cache.window);
  SYRINX_CHECK(stream.count > 0 && stream.count <= cache.pass_room() && stream.first >= rows_ &&
                   stream.first + stream.count <= x_.rows(),
               "rows {} to {} of a pass of {}", stream.first, stream.first + stream.count, x_.rows());
  SYRINX_CHECK(!config_.cross ||
                   (stream.cross != nullptr && stream.cross->positions > 0 && stream.cross->layers == config_.layers &&
                    stream.cross->heads == config_.heads && stream.cross->head_size == config_.head_size),
               "a stream of a decoder with cross-attention needs a CrossCache of {} layers of {} x {}", config_.layers,
               config_.heads, config_.head_size);
  SYRINX_CHECK(!config_.stream_gain || stream.gain != nullptr, "a stream without gain");
}

void Decoder::begin(const DecoderWeights& weights, std::span<const Rows> streams, Output wanted) {
  SYRINX_CHECK(weights.layers.size() == config_.layers && streams.size() <= streams_.capacity(),
               "{} layers of {}, {} streams of {}", weights.layers.size(), config_.layers, streams.size(),
               streams_.capacity());
  weights_ = &weights;
  wanted_ = wanted;
  rows_ = 0;
  single_ = true;
  streams_.clear();
  groups_.clear();
  pieces_.clear();
  in_parts_ = false;
  std::fill(gains_.begin(), gains_.end(), nullptr);
  for (const Rows& stream : streams) add_stream(stream);
}

void Decoder::add_stream(const Rows& stream) {
  check_stream(stream);
  const size_t end = stream.first + stream.count;
  if (config_.rotary != Rotary::kNone)
    kernels::rotary_angles(weights_->theta, stream.cache->position, rows_of(cosines_, stream.first, end),
                           rows_of(sines_, stream.first, end));
  if (config_.stream_gain) std::fill_n(gains_.begin() + stream.first, stream.count, stream.gain);
  if (config_.cross) {
    const bool joins = !groups_.empty() && groups_.back().cross == stream.cross && stream.first == rows_;
    if (!joins) groups_.push_back({.cross = stream.cross, .first = stream.first});
    groups_.back().rows += stream.count;
  }
  single_ = single_ && stream.count == 1;
  rows_ = end;
  streams_.push_back(stream);
  add_pieces(streams_.size() - 1);
}

// Parts are of positions alone, so that a stream has the same ones whatever goes on beside it.
void Decoder::add_pieces(size_t stream) {
  const size_t count = streams_[stream].count, position = streams_[stream].cache->position, segment = config_.segment;
  const size_t from = config_.window == 0 ? 0 : position + 1 - std::min(config_.window, position + 1);
  if (segment == 0 || count > 1 || from / segment == position / segment) return pieces_.push_back({.stream = stream});
  in_parts_ = true;
  for (size_t i = from / segment; i <= position / segment; ++i)
    pieces_.push_back({.stream = stream, .from = i * segment, .to = (i + 1) * segment, .whole = false});
}

void Decoder::end() {
  for (const Rows& stream : streams_) stream.cache->position += stream.count;
}

void Decoder::work(Crew::Seat& seat) {
  if (rows_ == 0) return;
  for (size_t i = 0; i < config_.layers; ++i) {
    // A prompt's last layer leaves keys and values; what it would compute from them is read by nobody.
    const bool goes_on = wanted_ == Output::kRows || i + 1 < config_.layers;
    attention_block(seat, i, goes_on);
    if (!goes_on) return;
    if (config_.cross) cross_block(seat, i);
    mlp_block(seat, i);
    // The others read x meanwhile; it is written again behind the next stage only.
    seat.together([&](const Part& part) {
      if (probe_ && part.rank == 0) probe_(i, rows_of(x_, rows_));
    });
  }
}

RowNorm::Work Decoder::normed(const NormWeights& norm) {
  return {.kind = config_.norm, .weights = &norm, .epsilon = config_.epsilon, .x = rows_of(x_, rows_)};
}

// This member's share of y = x W + b (+ addend); then(share) may go on with it.  Rows of streams that have one each go
// through one row at a time in f32, others stream by stream: neither depends on the other streams.
template <class Then>
void Decoder::product(const Part& part, const kernels::OwnedMatrix& matrix, View<const float, 2> x,
                      View<const float, 2> addend, View<float, 2> y, size_t grain, const Then& then) {
  if (single_ || kernels::is_narrow(matrix.view.type))
    return then(stream_linear_part(runner_, part, matrix.view, x, addend, y, grain));
  for (const Rows& stream : streams_) {
    Share own =
        linear_part(runner_, part, matrix.view, some_rows(x, stream.first, stream.count),
                    some_rows(addend, stream.first, stream.count), some_rows(y, stream.first, stream.count), grain);
    own.rows.begin += stream.first;
    own.rows.end += stream.first;
    then(own);
  }
}

// x += scale * (W from + b); an empty scale is one.
void Decoder::add_product(const Part& part, const kernels::OwnedMatrix& matrix, Plane& from,
                          const std::vector<float>& scale) {
  const View<float, 2> x = rows_of(x_, rows_);
  if (scale.empty()) return product(part, matrix, rows_of(from, rows_), x, x, 1, [](const Share&) {});
  product(part, matrix, rows_of(from, rows_), {}, rows_of(scaled_, rows_), 1, [&](const Share& own) {
    const size_t end = std::min(own.columns.end, config_.width);
    for (size_t n = own.rows.begin; n < own.rows.end; ++n) {
      float* const to = x.row(n);
      const float* const branch = scaled_.f32(n);
      for (size_t i = own.columns.begin; i < end; ++i) to[i] += scale[i] * branch[i];
    }
  });
}

void Decoder::attention_block(Crew::Seat& seat, size_t layer, bool goes_on) {
  const DecoderBlock& block = weights_->layers[layer];
  const RowNorm::Work work = normed(block.before);
  norm_.stage(seat, work);
  seat.stage([&](const Part& part) {
    product(part, block.in, norm_.rows(part, work), {}, rows_of(qkv_, rows_), 1, [](const Share&) {});
  });
  seat.stage([&](const Part& part) { attend(part, layer, goes_on); });
  if (!goes_on) return;
  if (in_parts_) {
    seat.stage([&](const Part& part) { attend_pieces(part, layer); });
    seat.stage([&](const Part& part) { merge_pieces(part); });
  }
  seat.stage([&](const Part& part) { add_product(part, block.out, attended_, block.attention_scale); });
}

void Decoder::cross_block(Crew::Seat& seat, size_t layer) {
  const CrossBlock& block = *weights_->layers[layer].cross;
  const RowNorm::Work work = normed(block.norm);
  norm_.stage(seat, work);
  seat.stage([&](const Part& part) {
    product(part, block.query, norm_.rows(part, work), {}, columns_of(qkv_, 0, rows_, 0, config_.query_width()), 1,
            [](const Share&) {});
  });
  seat.stage([&](const Part& part) { attend_cross(part, layer); });
  seat.stage([&](const Part& part) { add_product(part, block.out, attended_, {}); });
}

void Decoder::mlp_block(Crew::Seat& seat, size_t layer) {
  const DecoderBlock& block = weights_->layers[layer];
  RowNorm::Work work = normed(block.after);
  work.gains = gains_;
  work.gain_offset = layer * config_.width;
  norm_.stage(seat, work);
  const bool gated = config_.mlp == Mlp::kSwiGlu;
  seat.stage([&](const Part& part) {
    // A pair of panels of gate and values belongs to one member.
    product(part, block.up, norm_.rows(part, work), {}, rows_of(hidden_, rows_), gated ? 2 : 1,
            [&](const Share& own) { activate(own); });
  });
  seat.stage([&](const Part& part) { add_product(part, block.down, gated ? gated_ : hidden_, block.mlp_scale); });
}

void Decoder::activate(const Share& own) {
  const size_t first = own.columns.begin, count = own.columns.end - first;
  for (size_t n = own.rows.begin; n < own.rows.end; ++n) {
    const std::span<float> columns(hidden_.f32(n) + first, count);
    switch (config_.mlp) {
      case Mlp::kGelu: kernels::gelu_erf(columns, columns); break;
      case Mlp::kGeluTanh: kernels::gelu_tanh(columns, columns); break;
      case Mlp::kSwiGlu:
        kernels::swiglu_panels(columns.data(), count / (2 * kPanelColumns), gated_.f32(n) + first / 2);
        break;
    }
  }
}

std::span<float> Decoder::scratch(const Part& part, size_t floats) {
  return {reinterpret_cast<float*>(runner_.scratch(part.member, floats * sizeof(float)).data()), floats};
}

// Rotates and keeps the new keys, keeps the values, attends.  Members share the key heads of all streams, each with the
// queries that read it, so that nobody reads what another is writing; the streams of one head follow each other, so
// that a prefix that they share is fetched once.
void Decoder::attend(const Part& part, size_t layer, bool goes_on) {
  const size_t streams = streams_.size();
  const Range units = part.split(streams * config_.key_heads);
  for (size_t unit = units.begin; unit < units.end; ++unit) {
    place_head(streams_[unit % streams], layer, unit / streams, goes_on);
    if (goes_on && !in_parts_) attend_piece(part, pieces_[unit % streams], layer, unit / streams);
  }
}

// The same where a stream has several parts, behind a barrier: a part may read what another member has placed.
void Decoder::attend_pieces(const Part& part, size_t layer) {
  const Range units = part.split(pieces_.size() * config_.key_heads);
  for (size_t unit = units.begin; unit < units.end; ++unit)
    attend_piece(part, pieces_[unit % pieces_.size()], layer, unit / pieces_.size());
}

void Decoder::merge_pieces(const Part& part) {
  const size_t size = config_.head_size;
  const Range heads = part.split(config_.heads);
  for (size_t i = 0, count = 1; i < pieces_.size(); i += count) {
    for (count = 1; i + count < pieces_.size() && pieces_[i + count].stream == pieces_[i].stream;) ++count;
    if (pieces_[i].whole) continue;
    for (size_t h = heads.begin; h < heads.end; ++h)
      kernels::merge_attention(columns_of(parts_, i, count, h * size, size), log_sums_.f32(i) + h, log_sums_.stride(),
                               attended_.f32(streams_[pieces_[i].stream].first) + h * size);
  }
}

void Decoder::attend_piece(const Part& part, const Piece& piece, size_t layer, size_t key_head) {
  if (config_.cache == DType::kF32) {
    attend_head<float>(part, piece, layer, key_head);
  } else {
    attend_head<uint16_t>(part, piece, layer, key_head);
  }
}

// Norms and rotates the new keys of a head, and the queries that read them, and keeps keys and values.
void Decoder::place_head(const Rows& stream, size_t layer, size_t key_head, bool goes_on) {
  const DecoderConfig& c = config_;
  const DecoderBlock& block = weights_->layers[layer];
  const size_t head = c.head_size, group = c.heads / c.key_heads, at = stream.first, rows = stream.count;
  const size_t key_column = c.query_width() + key_head * head;
  const View<float, 2> keys = columns_of(qkv_, at, rows, key_column, head);
  const View<float, 2> queries = columns_of(qkv_, at, rows, key_head * group * head, group * head);
  if (c.head_norm) {
    kernels::rms_norm(keys, block.key_norm.data(), c.epsilon, keys);
    for (size_t n = 0; n < rows; ++n) {
      const View<float, 2> heads(queries.row(n), {group, head});
      kernels::rms_norm(heads, block.query_norm.data(), c.epsilon, heads);
    }
  }
  if (c.rotary != Rotary::kNone) {
    const View<const float, 2> cosines = rows_of(cosines_, at, at + rows), sines = rows_of(sines_, at, at + rows);
    kernels::rotary(cosines, sines, keys);
    if (goes_on) kernels::rotary(cosines, sines, queries);
  }
  stream.cache->append(layer, key_head, keys, columns_of(qkv_, at, rows, key_column + c.key_width(), head));
}

template <class T>
void Decoder::attend_head(const Part& part, const Piece& piece, size_t layer, size_t key_head) {
  const size_t head = config_.head_size, group = config_.heads / config_.key_heads;
  const size_t column = key_head * group * head, row = static_cast<size_t>(&piece - pieces_.data());
  const Rows& stream = streams_[piece.stream];
  KvCache& cache = *stream.cache;
  kernels::CacheAttention<T> input;
  input.q = columns_of(qkv_, stream.first, stream.count, column, group * head);
  input.keys = cache.head_keys<T>(layer, key_head);
  input.values = cache.head_values<T>(layer, key_head);
  if (cache.shared() > 0) {
    input.prefix_keys = cache.prefix->template head_keys<T>(layer, key_head);
    input.prefix_values = cache.prefix->template head_values<T>(layer, key_head);
  }
  input.heads = group;
  input.key_heads = 1;
  input.head_size = head;
  input.first_position = cache.position;
  input.window = config_.window;
  input.scale = 1.0f / std::sqrt(static_cast<float>(head));
  if (!piece.whole) {
    input.see_from = piece.from;
    input.see_to = piece.to;
    input.log_sums = log_sums_.f32(row) + key_head * group;
  }
  const size_t floats = kernels::cache_attention_scratch_size(cache.shared() + cache.capacity);
  kernels::cache_attention(input, {0, group}, scratch(part, floats),
                           piece.whole ? columns_of(attended_, stream.first, stream.count, column, group * head)
                                       : columns_of(parts_, row, 1, column, group * head));
}

void Decoder::attend_cross(const Part& part, size_t layer) {
  const Range units = part.split(groups_.size() * config_.heads);
  for (size_t unit = units.begin; unit < units.end; ++unit) {
    const Group& group = groups_[unit / config_.heads];
    if (group.cross->type == DType::kF32) {
      attend_cross_head<float>(part, group, layer, unit % config_.heads);
    } else {
      attend_cross_head<uint16_t>(part, group, layer, unit % config_.heads);
    }
  }
}

// All rows of the group look at all positions.  They go through as query heads that share a key head at the last
// position, so that keys and values are read once for several.
template <class T>
void Decoder::attend_cross_head(const Part& part, const Group& group, size_t layer, size_t head) {
  const CrossCache& cross = *group.cross;
  const size_t size = cross.head_size, count = group.rows;
  const size_t attention = kernels::cache_attention_scratch_size(cross.positions);
  const std::span<float> memory = scratch(part, 2 * count * size + attention);
  const View<float, 2> queries(memory.data(), {count, size}), results(memory.data() + count * size, {count, size});
  copy_rows(View<const float, 2>(columns_of(qkv_, group.first, count, head * size, size)), queries);
  kernels::CacheAttention<T> input;
  input.q = {queries.data(), {1, count * size}};
  input.keys = cross.head_keys<T>(layer, head);
  input.values = cross.head_values<T>(layer, head);
  input.heads = count;
  input.key_heads = 1;
  input.head_size = size;
  input.first_position = cross.positions - 1;
  input.scale = 1.0f / std::sqrt(static_cast<float>(size));
  kernels::cache_attention(input, {0, count}, memory.subspan(2 * count * size), {results.data(), {1, count * size}});
  copy_rows(View<const float, 2>(results), columns_of(attended_, group.first, count, head * size, size));
  if (observer_)
    observer_({.member = part.member,
               .layer = layer,
               .head = head,
               .first = group.first,
               .queries = columns_of(qkv_, group.first, count, head * size, size),
               .cross = &cross});
}

}  // namespace syrinx::nn
