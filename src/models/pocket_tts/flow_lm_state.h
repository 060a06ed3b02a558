// The memory of one stream of the language model, and a voice: the keys (rotated) and values of every position so far
// (spec pocket-tts.md, sections 3.2 and 5; the maker's pocket_tts/modules/transformer.py), in bf16 under the
// narrow precisions.  A stream that speaks with a voice has it as its prefix (nn/kv_cache.h).
//
// One pass at a time may write a state; a voice that streams refer to is not written any more, and any number of
// threads may read it.
#pragma once

#include <memory>

#include "models/pocket_tts/flow_lm_weights.h"
#include "nn/kv_cache.h"

namespace syrinx::pocket {

// Positions that a state may have at most: 11 minutes of speech.
using nn::kMaxPositions;

// In which type a model of this precision remembers: kF32 or kBF16.
constexpr DType cache_type(Precision precision) { return precision == Precision::kF32 ? DType::kF32 : DType::kBF16; }

struct FlowLmState : nn::KvCache {
  FlowLmState() = default;
  explicit FlowLmState(nn::KvCache cache) : KvCache(std::move(cache)) {}
  // Room for `capacity` positions of its own.  kLimitExceeded beyond kMaxPositions.
  static Result<FlowLmState> make(const FlowLmWeights& weights, size_t capacity);
  // Empty behind a voice, which is referred to and must not change any more.  kInvalidArgument: another model's voice
  // or another precision's, or a stream that has a voice itself.  kLimitExceeded: more than kMaxPositions together.
  Status start_after(std::shared_ptr<const FlowLmState> voice);
};

}  // namespace syrinx::pocket
