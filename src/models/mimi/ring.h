// The cache of a codec's transformer, whose layers have a window.
#pragma once

#include <string_view>

#include "models/mimi/seanet.h"
#include "nn/decoder.h"
#include "nn/kv_cache.h"

namespace syrinx::mimi {

// Rows of a ring for passes of `step` rows.
inline size_t ring_rows(const nn::DecoderWeights& weights, size_t step) { return weights.shape.window - 1 + step; }

// Not larger than nn::kMaxCacheBytes, as check() of the configuration sees to it.
inline nn::KvCache make_ring(const nn::DecoderWeights& weights, size_t step) {
  const nn::DecoderConfig& c = weights.shape;
  return *nn::KvCache::make({.layers = c.layers,
                             .key_heads = c.key_heads,
                             .head_size = c.head_size,
                             .capacity = ring_rows(weights, step),
                             .window = c.window});
}

// `probe` under this stage, or none.
inline nn::Decoder::Probe probe_into_stage(const Probe& probe, std::string_view stage) {
  if (!probe) return {};
  return [&probe, stage](size_t layer, View<const float, 2> rows) { probe(stage, layer, rows); };
}

}  // namespace syrinx::mimi
