// Attention of the decoder, to its own cache and to a CrossCache.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/bf16.h"
#include "kernels/cache_attention.h"
#include "kernels/rms_norm.h"
#include "kernels/rotary.h"
#include "nn/decoder.h"
#include "nn/rows.h"

namespace syrinx::nn {

namespace {

View<float, 2> some_rows(View<float, 2> rows, size_t first, size_t count) {
  return {rows.row(first), {count, rows.extent(1)}, {rows.stride(0), 1}};
}

}  // namespace

std::span<float> Decoder::scratch(const Part& part, size_t floats) {
  return {reinterpret_cast<float*>(runner_.scratch(part.member, floats * sizeof(float)).data()), floats};
}

// Rotates and keeps the new keys, keeps the values, attends.  Members share the key heads of all streams, each with the
// queries that read it, so that no member reads what another is writing; the streams of one head follow each other, so
// that a prefix that they share is fetched once.
void Decoder::attend(const Part& part, size_t layer, bool goes_on, const Pass& pass) {
  const size_t streams = all_.streams.size();
  const Range units = part.split(streams * config_.key_heads);
  for (size_t unit = units.begin; unit < units.end; ++unit) {
    place_head(all_.streams[unit % streams], layer, unit / streams, goes_on);
    if (goes_on && !pass.in_parts) attend_piece(part, layer, unit / streams, pass, unit % streams);
  }
}

// The same where a stream has several parts, behind a barrier: a part may read what another member has placed.
void Decoder::attend_pieces(const Part& part, size_t layer, const Pass& pass) {
  const size_t pieces = pass.pieces.size();
  const Range units = part.split(pieces * config_.key_heads);
  for (size_t unit = units.begin; unit < units.end; ++unit)
    attend_piece(part, layer, unit / pieces, pass, unit % pieces);
}

void Decoder::merge_pieces(const Part& part, const Pass& pass) {
  const std::vector<Piece>& pieces = pass.pieces;
  const size_t size = config_.head_size;
  const Range heads = part.split(config_.heads);
  for (size_t i = 0, count = 1; i < pieces.size(); i += count) {
    for (count = 1; i + count < pieces.size() && pieces[i + count].stream == pieces[i].stream;) ++count;
    if (pieces[i].whole) continue;
    for (size_t h = heads.begin; h < heads.end; ++h)
      kernels::merge_attention(columns_of(parts_, i, count, h * size, size), log_sums_.f32(i) + h, log_sums_.stride(),
                               attended_.f32(pass.streams[pieces[i].stream].first) + h * size);
  }
}

void Decoder::attend_piece(const Part& part, size_t layer, size_t key_head, const Pass& pass, size_t piece) {
  if (config_.cache == DType::kF32) {
    attend_head<float>(part, layer, key_head, pass, piece);
  } else if (config_.cache == DType::kI8) {
    attend_head<int8_t>(part, layer, key_head, pass, piece);
  } else {
    attend_head<uint16_t>(part, layer, key_head, pass, piece);
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
void Decoder::attend_head(const Part& part, size_t layer, size_t key_head, const Pass& pass, size_t number) {
  const size_t head = config_.head_size, group = config_.heads / config_.key_heads, column = key_head * group * head;
  const Piece& piece = pass.pieces[number];
  const Rows& stream = pass.streams[piece.stream];
  KvCache& cache = *stream.cache;
  kernels::CacheAttention<T> input;
  input.keys = cache.head_keys<T>(layer, key_head);
  input.values = cache.head_values<T>(layer, key_head);
  if (cache.shared() > 0) {
    input.prefix_keys = cache.prefix->template head_keys<T>(layer, key_head);
    input.prefix_values = cache.prefix->template head_values<T>(layer, key_head);
  }
  if constexpr (std::is_same_v<T, int8_t>) {
    input.key_scales = cache.head_key_scales(layer, key_head);
    input.value_scales = cache.head_value_scales(layer, key_head);
    if (cache.shared() > 0) {
      const size_t rows = cache.shared();
      input.prefix_key_scales = {cache.prefix->head_key_scales(layer, key_head).data(), {rows, 1}};
      input.prefix_value_scales = {cache.prefix->head_value_scales(layer, key_head).data(), {rows, 1}};
    }
  }
  input.heads = group;
  input.key_heads = 1;
  input.head_size = head;
  input.window = config_.window;
  input.scale = 1.0f / std::sqrt(static_cast<float>(head));
  if (!piece.whole) {
    input.see_from = piece.from;
    input.see_to = piece.to;
    input.log_sums = log_sums_.f32(number) + key_head * group;
  }
  const size_t floats = kernels::cache_attention_scratch_size(cache.shared() + cache.capacity);
  const View<float, 2> out = piece.whole ? columns_of(attended_, stream.first, stream.count, column, group * head)
                                         : columns_of(parts_, number, 1, column, group * head);
  const size_t rows = config_.rows_alone ? 1 : stream.count;
  for (size_t n = 0; n < stream.count; n += rows) {
    input.q = columns_of(qkv_, pass.query_row[piece.stream] + n, rows, column, group * head);
    input.first_position = cache.position + pass.rows_before[piece.stream] + n;
    kernels::cache_attention(input, {0, group}, scratch(part, floats), some_rows(out, n, rows));
  }
  if (bf16_rows()) kernels::round_rows(out, attended16_.at(stream.first, column), attended16_.stride);
}

void Decoder::attend_cross(const Part& part, size_t layer, const Pass& pass) {
  const Range units = part.split(pass.groups.size() * config_.heads);
  for (size_t unit = units.begin; unit < units.end; ++unit) {
    const Group& group = pass.groups[unit / config_.heads];
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
